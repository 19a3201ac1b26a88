package assemble

import (
	"math/rand/v2"
	"testing"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// It forgets what a list of the most recently used forgets, whatever is done with it.
func TestForgetsWhatWasUsedLongestAgo(t *testing.T) {
	for _, size := range []int{0, 1, 2, 7, 50} {
		r := newRecent(size)
		want, err := simplelru.NewLRU[pcommon.TraceID, decided](max(size, 1), nil)
		require.NoError(t, err)
		draw := rand.New(rand.NewPCG(uint64(size), 1))
		for range 20_000 {
			id := pcommon.TraceID{byte(draw.IntN(60))}
			switch draw.IntN(4) {
			case 0, 1:
				d := decided{rule: int32(draw.IntN(100))}
				r.put(id, d)
				want.Add(id, d)
			case 2:
				got, ok := r.get(id)
				v, there := want.Get(id)
				require.Equal(t, there, ok)
				require.Equal(t, v, got)
			case 3:
				r.remove(id)
				want.Remove(id)
			}
			require.Len(t, r.place, want.Len())
			require.LessOrEqual(t, len(r.entries), 1+max(size, 1))
		}
	}
}
