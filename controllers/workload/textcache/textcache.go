// SPDX-License-Identifier: Apache-2.0

// Package textcache remembers the parsed values of texts that users write, within a bound in bytes.
package textcache

import (
	"container/list"
	"strings"
	"sync"
)

// Cache has the parsed values of the most recently used texts. Each entry counts with the size of its value that the caller
// passes.
type Cache[T any] struct {
	limits Limits

	mu    sync.Mutex
	order *list.List // of *entry, the most recently used first
	known map[string]*list.Element
	bytes int
}

// Limits bound a Cache.
type Limits struct {
	// Bytes is how many bytes all entries together may take.
	Bytes int
	// Text is the length of the longest text that is remembered. A longer text is parsed each time.
	Text int
}

// entryBytes is what an entry takes beside its text and its value: the entry, and its places in the list and the map.
const entryBytes = 256

type entry struct {
	text    string
	meaning any
	bytes   int
}

// New makes an empty Cache.
func New[T any](limits Limits) *Cache[T] {
	return &Cache[T]{limits: limits, order: list.New(), known: map[string]*list.Element{}}
}

// Get returns the value that is remembered for a text.
func (c *Cache[T]) Get(text string) (meaning T, ok bool) {
	if len(text) > c.limits.Text {
		return meaning, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.known[text]
	if !ok {
		return meaning, false
	}
	c.order.MoveToFront(at)
	meaning, ok = at.Value.(*entry).meaning.(T)
	return meaning, ok
}

// Add remembers the value of a text, which takes size bytes, and forgets the least recently used texts to make
// room. It copies the text, which may be part of a larger object in memory.
func (c *Cache[T]) Add(text string, meaning T, size int) {
	bytes := entryBytes + len(text) + size
	if len(text) > c.limits.Text || bytes > c.limits.Bytes {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, ok := c.known[text]; ok {
		c.removeEntry(at)
	}
	for c.bytes+bytes > c.limits.Bytes {
		c.removeEntry(c.order.Back())
	}
	text = strings.Clone(text)
	c.known[text] = c.order.PushFront(&entry{text: text, meaning: meaning, bytes: bytes})
	c.bytes += bytes
}

func (c *Cache[T]) removeEntry(at *list.Element) {
	old := c.order.Remove(at).(*entry) //nolint:forcetypeassert // nothing else is in the list
	delete(c.known, old.text)
	c.bytes -= old.bytes
}

// TotalBytes is how many bytes the entries take together.
func (c *Cache[T]) TotalBytes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}
