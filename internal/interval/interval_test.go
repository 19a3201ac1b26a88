package interval

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		l := Loop{Every: time.Minute, Run: func(context.Context) { n++ }}
		l.Start()
		time.Sleep(3*time.Minute + time.Second)
		l.Stop()
		assert.Equal(t, 3, n)
		time.Sleep(time.Hour)
		assert.Equal(t, 3, n, "it has stopped")
		l.Stop()
	})
}

// Stop breaks off what runs and waits for its end.
func TestStopWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := false
		l := Loop{Every: time.Minute, Run: func(ctx context.Context) {
			<-ctx.Done()
			time.Sleep(time.Second)
			ended = true
		}}
		l.Start()
		time.Sleep(2 * time.Minute)
		l.Stop()
		assert.True(t, ended)
	})
}

func TestStopWithoutStart(*testing.T) {
	(&Loop{}).Stop()
}
