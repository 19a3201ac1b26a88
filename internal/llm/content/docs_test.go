package content

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPrivacyPage holds docs/privacy.md to the code: every class, mode and place is named there, and the figures about the
// tests are those of the tests.
func TestPrivacyPage(t *testing.T) {
	b, err := os.ReadFile("../../../docs/privacy.md")
	require.NoError(t, err)
	page := string(b)
	for c := range NumClasses {
		assert.Contains(t, page, "`"+c.String()+"`")
	}
	for _, m := range []Mode{ModeStrip, ModeHash, ModeTruncate, ModeKeep} {
		assert.Contains(t, page, "| `"+string(m)+"` |")
	}
	for _, p := range PlaceKeys {
		assert.Contains(t, page, "`"+p+"`")
	}
	assert.Contains(t, page, fmt.Sprintf("canaries of %d forms (text in %d scripts", len(forms), len(scripts)))
	assert.Contains(t, page, OtherName)
	assert.Contains(t, page, blobMark)
	assert.Equal(t, "unknown", NumClasses.String(), "a class that does not exist is not a crash")
}
