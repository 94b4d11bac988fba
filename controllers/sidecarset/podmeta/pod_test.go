// SPDX-License-Identifier: Apache-2.0

package podmeta

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/test/heap"
)

func annotated(text string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{kruise.SidecarSetHashKey: text}}}
}

// manySets is an annotation of so many bytes about as many SidecarSets as there is room for.
func manySets(bytes, seed int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"seed-%d":{}`, seed)
	for i := 0; b.Len() < bytes; i++ {
		fmt.Fprintf(&b, `,"%d":{}`, i)
	}
	return b.String() + "}"
}

func TestWhatAnnotationsTakeInMemoryIsBounded(t *testing.T) {
	tests := []struct {
		name  string
		bytes int
		texts int
		most  int
	}{
		{"twenty annotations of 2.5 MB leave nothing", 2_500_000, 20, 1 << 20},
		{"annotations of 250 KiB leave nothing", 250 << 10, 50, 1 << 20},
		{"thousands that are small enough take what all may take together", 15 << 10, 400, RememberedBytes + RememberedBytes/4},
		{"the smallest too", 20, 40_000, RememberedBytes + RememberedBytes/4},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := heap.CountLiveBytes()
			for i := range test.texts {
				if _, err := Read(annotated(manySets(test.bytes, i)), kruise.SidecarSetHashKey); (err != nil) != (test.bytes > 256<<10) { // more is not read
					t.Fatal(err)
				}
			}
			if grown := heap.CountLiveBytes() - before; grown > test.most {
				t.Errorf("%d annotations of %d bytes keep %d bytes, want at most %d", test.texts, test.bytes, grown, test.most)
			}
		})
	}
	if remembered.TotalBytes() > RememberedBytes {
		t.Errorf("%d bytes are remembered, want at most %d", remembered.TotalBytes(), RememberedBytes)
	}
}

func TestNothingIsRememberedOfAPodThatIsMarked(t *testing.T) {
	before := remembered.TotalBytes()
	for i := range 50 {
		pod := annotated(manySets(1000, -1-i))
		if err := (InjectionRecord{Set: "logs", Now: time.Unix(0, 0)}).AnnotatePod(pod); err != nil {
			t.Fatal(err)
		}
	}
	if after := remembered.TotalBytes(); after != before {
		t.Errorf("marking pods, as a dry run does, has %d bytes remembered", after-before)
	}
}
