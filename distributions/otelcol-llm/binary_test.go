package distribution_test

import (
	"debug/elf"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The release binary starts where no NVIDIA library is: it needs none to start, binds functions when they are called, and refers to those
// alone that are listed. What else it refers to would end the process at the first call on a machine whose library is older.
func TestBinaryNeedsNoGPULibrary(t *testing.T) {
	f, err := elf.Open(binary(t))
	require.NoError(t, err)
	defer f.Close()
	flags, err := f.DynValue(elf.DT_FLAGS)
	require.NoError(t, err)
	for _, v := range flags {
		assert.Zero(t, elf.DynFlag(v)&elf.DF_BIND_NOW, "link with -extldflags=-Wl,-z,lazy")
	}
	flags, err = f.DynValue(elf.DT_FLAGS_1)
	require.NoError(t, err)
	for _, v := range flags {
		assert.Zero(t, elf.DynFlag1(v)&elf.DF_1_NOW, "link with -extldflags=-Wl,-z,lazy")
	}
	libraries, err := f.ImportedLibraries()
	require.NoError(t, err)
	for _, l := range libraries {
		assert.NotRegexp(t, "dcgm|nvidia", l)
	}
	symbols, err := f.ImportedSymbols()
	require.NoError(t, err)
	dcgm := regexp.MustCompile(`^((?:dcgm|Dcgm)\w+|errorString)$`)
	var got []string
	for _, s := range symbols {
		if dcgm.MatchString(s.Name) {
			got = append(got, s.Name)
		}
	}
	slices.Sort(got)
	pinned, err := os.ReadFile(filepath.Join(root, "receiver", "dcgmreceiver", "testdata", "undefined_symbols.txt"))
	require.NoError(t, err)
	assert.Equal(t, strings.Fields(string(pinned)), got)
}
