// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	mergePatch = types.MergePatchType
	jsonPatch  = types.JSONPatchType
)

// limit is how long a step may take; a minute of the clock has to begin in some.
const limit = 150 * time.Second

// kind is a pair: a kind of Kubernetes and ours.
type kind struct {
	native, advanced string // the manifests
	// paths has the fields that ours has in another place, as JSON pointers; nil for none.
	paths *strings.Replacer
	// see is what is compared after each step.
	see func(context.Context, *side) (string, error)
	// history is what is compared at the end; nil for what happened to pods, in order.
	history func(*side) string
}

// scenario is a life that both lead.
type scenario struct {
	name string
	kind kind
	// edit changes the object before it is created. It is a JSON patch.
	edit string
	// place labels the nodes that the pods may be on, if not all; nodes are their names if
	// they are what tells pods apart.
	place string
	nodes []string
	steps []step
	// anyNode is a scenario in which both may choose which nodes are next.
	anyNode bool
	// apart is a scenario in which ours does something else on purpose: what happened is not compared.
	apart bool
	// unordered is a scenario in which pods may come and go in any order.
	unordered bool
}

// step is an act of a user, or of a node, and what both are to look like afterwards.
type step struct {
	does string
	act  func(context.Context, *side) error
	want string
	// advanced is what ours is to look like where that is another thing on purpose.
	advanced string
	// still is how long both have to stay like that.
	still time.Duration
}

// side is one of the two.
type side struct {
	c         client.WithWatch
	namespace string
	object    *unstructured.Unstructured
	nodes     []string
	anyNode   bool
	paths     *strings.Replacer
	started   time.Time

	mu     sync.Mutex
	events []string // what happened to pods
	seen   map[types.UID]bool
}

func (s scenario) live(t *testing.T, c client.WithWatch) {
	started := time.Now()
	sides := map[string]*side{}
	for name, manifest := range map[string]string{"native": s.kind.native, "advanced": s.kind.advanced} {
		sides[name] = s.begin(t, c, name, manifest, started)
	}
	for i, step := range s.steps {
		if step.act != nil {
			for name, one := range sides {
				if err := step.act(t.Context(), one); err != nil {
					t.Fatalf("step %d, %s: %s: %v", i+1, step.does, name, err)
				}
			}
		}
		want := map[string]string{"native": step.want, "advanced": step.want}
		if step.advanced != "" {
			want["advanced"] = step.advanced
		}
		if err := s.await(t.Context(), sides, want, max(step.still, 500*time.Millisecond)); err != nil {
			t.Fatalf("step %d, %s: %v%s", i+1, step.does, err, s.told(sides))
		}
	}
	if native, advanced := s.past(sides["native"]), s.past(sides["advanced"]); !s.apart && native != advanced {
		t.Errorf("what happened differs:%s", s.told(sides))
	}
}

// begin creates the namespace and the object, and follows what happens there.
func (s scenario) begin(t *testing.T, c client.WithWatch, name, manifest string, started time.Time) *side {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "parity-" + name + "-"}}
	if err := c.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	one := &side{c: c, namespace: namespace.Name, nodes: s.nodes, anyNode: s.anyNode, started: started, seen: map[types.UID]bool{}, object: &unstructured.Unstructured{}}
	if err := yaml.Unmarshal([]byte(manifest), &one.object.Object); err != nil {
		t.Fatal(err)
	}
	one.object.SetNamespace(namespace.Name)
	if name == "advanced" {
		one.paths = s.kind.paths
	}
	if s.place != "" {
		selector := map[string]string{"scenario": s.place}
		if err := unstructured.SetNestedStringMap(one.object.Object, selector, "spec", "template", "spec", "nodeSelector"); err != nil {
			t.Fatal(err)
		}
	}
	if err := one.edit(s.edit); err != nil {
		t.Fatal(err)
	}
	if err := one.follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), one.object); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return one
}

// await waits until both look as they are wanted to, and stay so.
func (s scenario) await(ctx context.Context, sides map[string]*side, want map[string]string, still time.Duration) error {
	var since time.Time
	got := map[string]string{}
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		same := true
		for name, one := range sides {
			// A question that is not answered is asked again.
			saw, err := s.kind.see(ctx, one)
			if ctx.Err() != nil {
				return false, ctx.Err()
			}
			if err != nil {
				saw = err.Error()
			}
			got[name] = saw
			same = same && got[name] == want[name]
		}
		if !same {
			since = time.Time{}
			return false, nil
		}
		if since.IsZero() {
			since = time.Now()
		}
		return time.Since(since) >= still, nil
	})
	if err != nil {
		return fmt.Errorf("%w\nwant of the native one: %s\n got of the native one: %s\n         want of ours: %s\n          got of ours: %s",
			err, want["native"], got["native"], want["advanced"], got["advanced"])
	}
	return nil
}

func (s scenario) told(sides map[string]*side) string {
	return fmt.Sprintf("\n  native: %s\nadvanced: %s", s.past(sides["native"]), s.past(sides["advanced"]))
}

func (s scenario) past(one *side) string {
	if s.kind.history != nil {
		return s.kind.history(one)
	}
	return strings.Join(one.past(s.unordered), " ")
}
