package sim

// kvCache is vLLM's block pool with prefix caching: every block that nobody uses stands in one queue, in the order in which
// it was given back; an allocation takes from its head and so evicts the least recently used contents; a block that holds
// a known prefix can be taken back from the middle.
// Source: vllm/v1/core/block_pool.py and kv_cache_utils.py (FreeKVCacheBlockQueue).
type kvCache struct {
	size     int
	reserved int // taken by a fault
	free     int // blocks in the queue
	byKey    map[uint64]*block
	queue    block // sentinel of the ring of free blocks: next is the head, prev the tail
}

// block holds block_size tokens. key is 0 until its contents are complete and known.
type block struct {
	key        uint64
	refs       int
	prev, next *block
}

func newKVCache(size int) *kvCache {
	c := &kvCache{size: size, byKey: map[uint64]*block{}}
	c.queue.prev, c.queue.next = &c.queue, &c.queue
	for range size {
		c.enqueue(&block{})
	}
	return c
}

// available is how many blocks can be allocated now.
func (c *kvCache) available() int { return max(c.free-c.reserved, 0) }

// usage is the share of blocks that are in use, 0 to 1.
func (c *kvCache) usage() float64 {
	return min(float64(c.size-c.free+c.reserved)/float64(c.size), 1)
}

// allocate appends n new blocks to held. The caller has asked available.
func (c *kvCache) allocate(held []*block, n int) []*block {
	for range n {
		b := c.queue.next
		c.dequeue(b)
		if b.key != 0 {
			delete(c.byKey, b.key)
			b.key = 0
		}
		b.refs = 1
		held = append(held, b)
	}
	return held
}

// lookup counts how many of the keys, from the first on, are cached, and how many of those stand in the free queue (they
// need room just as new ones do).
func (c *kvCache) lookup(keys []uint64) (hits, idle int) {
	for _, k := range keys {
		b := c.byKey[k]
		if b == nil {
			break
		}
		if b.refs == 0 {
			idle++
		}
		hits++
	}
	return hits, idle
}

// share appends the cached blocks of the keys to held. All of them are cached.
func (c *kvCache) share(held []*block, keys []uint64) []*block {
	for _, k := range keys {
		b := c.byKey[k]
		if b.refs == 0 {
			c.dequeue(b)
		}
		b.refs++
		held = append(held, b)
	}
	return held
}

// remember makes the contents of held[i] known under keys[i]. A key that another block has already stays there.
func (c *kvCache) remember(held []*block, keys []uint64) {
	for i, k := range keys {
		if held[i].key == 0 && c.byKey[k] == nil {
			held[i].key = k
			c.byKey[k] = held[i]
		}
	}
}

// release gives blocks back, the last first, so that the tail of a prompt is evicted before its head.
func (c *kvCache) release(held []*block) {
	for i := len(held) - 1; i >= 0; i-- {
		if held[i].refs--; held[i].refs == 0 {
			c.enqueue(held[i])
		}
	}
}

func (c *kvCache) enqueue(b *block) {
	tail := c.queue.prev
	b.prev, b.next = tail, &c.queue
	tail.next, c.queue.prev = b, b
	c.free++
}

func (c *kvCache) dequeue(b *block) {
	b.prev.next, b.next.prev = b.next, b.prev
	b.prev, b.next = nil, nil
	c.free--
}
