// SPDX-License-Identifier: Apache-2.0

package textcache

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/regatta-sh/regatta/test/heap"
)

func TestWhatWasUsedLastIsRemembered(t *testing.T) {
	c := New[int](Limits{Bytes: 2 * (entryBytes + 1), Text: 10})
	c.Add("a", 1, 0)
	c.Add("b", 2, 0)
	if _, ok := c.Get("a"); !ok {
		t.Fatal("a is forgotten, though there is room for two")
	}
	c.Add("c", 3, 0)
	for text, want := range map[string]bool{"a": true, "b": false, "c": true} {
		if _, ok := c.Get(text); ok != want {
			t.Errorf("%s is remembered: %v, want %v", text, ok, want)
		}
	}
	c.Add("a", 4, 0)
	if got, _ := c.Get("a"); got != 4 {
		t.Errorf("a means %d, want what was added last", got)
	}
}

func TestALargeTextIsNotRemembered(t *testing.T) {
	c := New[int](Limits{Bytes: 1 << 20, Text: 10})
	c.Add(strings.Repeat("x", 11), 1, 0)
	if _, ok := c.Get(strings.Repeat("x", 11)); ok || c.TotalBytes() != 0 {
		t.Errorf("a text over the bound is remembered, in %d bytes", c.TotalBytes())
	}
}

func TestEntriesNeverTakeMoreThanTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := Limits{
			Bytes: rapid.IntRange(0, 4000).Draw(t, "bytes"), Text: rapid.IntRange(0, 2000).Draw(t, "text"),
		}
		c := New[string](limits)
		for i := range rapid.IntRange(1, 60).Draw(t, "adds") {
			text := strings.Repeat(fmt.Sprint(i%7), rapid.IntRange(0, 3000).Draw(t, "size"))
			c.Add(text, text, rapid.IntRange(0, 2000).Draw(t, "meaning"))
			sum := 0
			for _, at := range c.known {
				sum += at.Value.(*entry).bytes
			}
			if c.TotalBytes() > limits.Bytes || sum != c.TotalBytes() || len(c.known) != c.order.Len() {
				t.Fatalf("%d bytes of %d, the entries have %d, %d in the map and %d in the list", c.TotalBytes(), limits.Bytes, sum, len(c.known), c.order.Len())
			}
			if got, ok := c.Get(text); ok && got != text {
				t.Fatalf("%q means %q", text, got)
			}
		}
	})
}

func TestATextThatIsAPartOfARequestDoesNotKeepTheRequest(t *testing.T) {
	c := New[int](Limits{Bytes: 1 << 20, Text: 1 << 10})
	before := heap.CountLiveBytes()
	for i := range 20 {
		request := strings.Repeat(string(rune('a'+i)), 2<<20)
		c.Add(request[:100], i, 0)
	}
	if grown := heap.CountLiveBytes() - before; grown > 1<<20 {
		t.Errorf("20 texts of 100 bytes keep %d bytes", grown)
	}
	runtime.KeepAlive(c)
}
