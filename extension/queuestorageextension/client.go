package queuestorageextension

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// retryInterval is how often a storage that could not be written is tried again.
const retryInterval = time.Second

var errClosed = errors.New("the queue's storage is closed")

// events are told with the client's lock held.
type events struct {
	failing func(error) // from now on the storage cannot be written
	written func()      // it is written again, with everything that waited
	refused func(context.Context)
}

// client is the storage of one queue.
//
// A batch that cannot be written is put off: it is applied to pending, which lies over the storage for whoever reads, and all of pending is
// written in one transaction once that works. What the storage holds until then is the queue as it was before the first batch that was put
// off, so that a process that is killed meanwhile sends again what it had sent since, and loses what only pending had.
//
// A batch of Set operations alone is new data, and is put off only as far as limit goes. One that reads or deletes is a queue's progress and is
// always put off: the queue would drop the item that it cannot note as being sent.
type client struct {
	storage storage.Client
	limit   int64 // bytes of new data that may be pending; a batch that is alone may exceed it
	events  events
	closed  func()

	mu      sync.Mutex
	pending map[string]entry
	held    int64 // bytes of all values in pending
	failing error // why nothing can be written
	retry   *time.Timer
	done    bool
}

// entry is what has to be done to one key.
type entry struct {
	value   []byte
	deleted bool
	// stored says that the storage has the key, so that a deletion has to reach it.
	stored bool
}

func newClient(inner storage.Client, limit int64, ev events) *client {
	return &client{storage: inner, limit: limit, events: ev, closed: func() {}, pending: map[string]entry{}}
}

func (c *client) Get(ctx context.Context, key string) ([]byte, error) {
	op := storage.GetOperation(key)
	err := c.Batch(ctx, op)
	return op.Value, err
}

func (c *client) Set(ctx context.Context, key string, value []byte) error {
	return c.Batch(ctx, storage.SetOperation(key, value))
}

func (c *client) Delete(ctx context.Context, key string) error {
	return c.Batch(ctx, storage.DeleteOperation(key))
}

// Batch implements storage.Client. Its error is that of the storage, when new data is refused or something cannot be read.
func (c *client) Batch(ctx context.Context, ops ...*storage.Operation) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done {
		return errClosed
	}
	if c.failing == nil && !onlyDeletes(ops) {
		err := c.storage.Batch(ctx, append(c.backlog(), ops...)...)
		if err == nil {
			c.clear()
			return nil
		}
		c.fail(err)
	}
	// A queue that starts reads what a process before it was sending, deletes it, and adds it again. Deletions alone wait for what comes
	// next, so that both are one transaction: the space for the second may be missing.
	return c.putOff(ctx, ops)
}

func onlyDeletes(ops []*storage.Operation) bool {
	for _, op := range ops {
		if op.Type != storage.Delete {
			return false
		}
	}
	return len(ops) > 0
}

// backlog is pending as operations. Each key is there once, so their order does not matter.
func (c *client) backlog() []*storage.Operation {
	if len(c.pending) == 0 {
		return nil
	}
	ops := make([]*storage.Operation, 0, len(c.pending)+2)
	for key, e := range c.pending {
		if e.deleted {
			ops = append(ops, storage.DeleteOperation(key))
		} else {
			ops = append(ops, storage.SetOperation(key, e.value))
		}
	}
	return ops
}

// fail begins the time in which nothing can be written.
func (c *client) fail(err error) {
	if c.failing == nil {
		c.events.failing(err)
	}
	c.failing = err
	c.retryLater()
}

// clear is for when everything is written.
func (c *client) clear() {
	if len(c.pending) > 0 {
		c.pending, c.held = map[string]entry{}, 0
	}
	if c.failing != nil {
		c.failing = nil
		c.events.written()
	}
}

// putOff applies a batch to pending, whole or not at all.
func (c *client) putOff(ctx context.Context, ops []*storage.Operation) error {
	if isNewData(ops) && !c.fits(ops) {
		c.events.refused(ctx)
		return fmt.Errorf("the queue's storage cannot be written and %d bytes wait in memory: %w", c.held, c.failing)
	}
	stored := make(map[string][]byte, len(ops)) // what the storage has
	for _, op := range ops {
		if _, ok := c.pending[op.Key]; ok || op.Type == storage.Delete {
			continue
		}
		v, err := c.storage.Get(ctx, op.Key)
		if err != nil {
			return err
		}
		stored[op.Key] = v
	}
	for _, op := range ops {
		e, waits := c.pending[op.Key]
		switch {
		case op.Type == storage.Get && !waits:
			op.Value = stored[op.Key]
		case op.Type == storage.Get:
			op.Value = bytes.Clone(e.value)
		case op.Type == storage.Set:
			c.put(op.Key, entry{value: append([]byte{}, op.Value...), stored: e.stored || stored[op.Key] != nil})
		case waits && !e.stored:
			c.held -= int64(len(e.value))
			delete(c.pending, op.Key)
		default:
			c.put(op.Key, entry{deleted: true, stored: true})
		}
	}
	c.retryLater()
	return nil
}

func (c *client) put(key string, e entry) {
	c.held += int64(len(e.value)) - int64(len(c.pending[key].value))
	c.pending[key] = e
}

func isNewData(ops []*storage.Operation) bool {
	for _, op := range ops {
		if op.Type != storage.Set {
			return false
		}
	}
	return len(ops) > 0
}

// fits tells whether new data may wait in memory. A batch that would be alone there may always: a queue counts what it refuses as waiting
// until it has run empty, and it runs empty only when there was something to send.
func (c *client) fits(ops []*storage.Operation) bool {
	others, size := c.held, int64(0)
	for _, op := range ops {
		others -= int64(len(c.pending[op.Key].value)) // the queue's own notes, which it writes with each batch
		size += int64(len(op.Value))
	}
	return others <= 0 || others+size <= c.limit
}

// retryLater sees to it that pending is written.
func (c *client) retryLater() {
	if c.retry == nil {
		c.retry = time.AfterFunc(retryInterval, c.again)
	}
}

func (c *client) again() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retry = nil
	if c.done || (len(c.pending) == 0 && c.failing == nil) {
		return
	}
	if err := c.flush(context.Background()); err != nil {
		c.retryLater()
	}
}

// flush writes pending.
func (c *client) flush(ctx context.Context) error {
	if err := c.storage.Batch(ctx, c.backlog()...); err != nil {
		c.fail(err)
		return err
	}
	c.clear()
	return nil
}

// Close implements storage.Client. It writes what is pending; its error says what is lost when that does not work. Where nothing is lost, because
// only notes and deletions are pending, there is none: the next process sends again what was sent.
func (c *client) Close(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done {
		return nil
	}
	if c.retry != nil {
		c.retry.Stop()
	}
	var err error
	if len(c.pending) > 0 {
		if cause := c.flush(ctx); cause != nil {
			if items, size := c.onlyHere(); items > 0 {
				err = fmt.Errorf("the queue's storage cannot be written; %d items of %d bytes that only memory had are lost: %w", items, size, cause)
			}
		}
	}
	c.done = true
	c.closed()
	return errors.Join(err, c.storage.Close(ctx))
}

// onlyHere is what the storage has in no form.
func (c *client) onlyHere() (items int, size int64) {
	for _, e := range c.pending {
		if !e.deleted && !e.stored {
			items++
			size += int64(len(e.value))
		}
	}
	return items, size
}

// state is how a queue fares.
type state struct {
	failing bool
	held    int64 // bytes
}

func (c *client) state() state {
	c.mu.Lock()
	defer c.mu.Unlock()
	return state{failing: c.failing != nil, held: c.held}
}
