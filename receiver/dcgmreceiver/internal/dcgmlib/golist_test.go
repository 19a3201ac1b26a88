//go:build cgo && linux && !nodcgm

package dcgmlib

import (
	"os/exec"
	"strings"
)

// goList is the folder of a package.
func goList(pkg string) (string, error) {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", pkg).Output()
	return strings.TrimSpace(string(out)), err
}
