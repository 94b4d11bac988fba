// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

// unasked are the rows of README.md on what is written without a decision.
const unasked = "unasked: "

// TestEachDisruptionIsAskedAbout holds that each function of product code that writes to the API server, or stops a container, is
// in the table: with the points that are asked first, or with the row of README.md that says that no policy decides it. That the
// points are asked is proved by the calls: from whatever leads to the write, with nothing that calls it, a function is reached that
// asks the point.
func TestEachDisruptionIsAskedAbout(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	files := parseProduct(t, "controllers", "nodeagent", "engine/rank")
	graph, found := graphOf(files), writesIn(files)
	for site := range found {
		if disruptions[site] == "" {
			t.Errorf("%s writes to the API server or stops a container: ask a point about it, or add it to \"What no policy can do\" of README.md", site)
		}
	}
	for site, by := range disruptions {
		if !found[site] {
			t.Errorf("%s is in the table and writes nothing any more", site)
			continue
		}
		row, is := strings.CutPrefix(by, unasked)
		if is && !strings.Contains(string(readme), "| "+row+" |") {
			t.Errorf("README.md has no row %q, for %s", row, site)
		}
		if !is {
			proveAsked(t, graph, site, by)
		}
	}
	if len(found) < 100 {
		t.Errorf("only %d functions that write are found", len(found))
	}
}

// proveAsked fails unless all points of a text are asked before a write. A text has points with commas between them; one of
// several, with "or" between them, is enough; "point at function" is asked by another process, on the way to what the write reads.
func proveAsked(t *testing.T, g *callGraph, site, by string) {
	t.Helper()
	for point := range strings.SplitSeq(by, ", ") {
		if point, elsewhere, ok := strings.Cut(point, " at "); ok {
			if !g.functions[elsewhere] || !g.asks(elsewhere, point) {
				t.Errorf("%s: %s does not ask %s", site, elsewhere, point)
			}
			continue
		}
		if entries := g.unaskedEntries(site, strings.Split(point, " or ")...); len(entries) > 0 {
			t.Errorf("%s is reached from %s, which does not ask %s", site, strings.Join(entries, ", "), point)
		}
	}
}

// Each form of a write is found, and what writes nothing is not.
func TestWritesAreFound(t *testing.T) {
	for body, want := range map[string]bool{
		`return r.client.Patch(ctx, pod, client.MergeFrom(was))`:                              true, // an image in place, or a mark
		`return r.Client().Patch(ctx, pod, p)`:                                                true,
		`return r.client.Create(ctx, &kruise.ContainerRecreateRequest{})`:                     true,
		`return r.client.Status().Patch(ctx, pod, p)`:                                         true,
		`return r.client.SubResource("resize").Update(ctx, pod)`:                              true,
		`return r.client.SubResource("eviction").Create(ctx, pod, eviction)`:                  true,
		`return r.pods.Evict(parent, eviction)`:                                               true,
		`return r.apps.UpdateStatus(context.WithoutCancel(ctx), o)`:                           true,
		`short, end := context.WithTimeout(ctx, 1); defer end(); return c.Delete(short, pod)`: true,
		`return r.client.Update(request.Context(), child)`:                                    true,
		`return retry(r.client.Delete)`:                                                       true,
		`return func(c context.Context) error { return r.writer.Apply(c, o) }`:                true,
		`return runtime.Stop(ctx, run, grace)`:                                                true,
		`return r.runtimes.StopContainer(ctx, q)`:                                             true,
		`return r.client.Create(ctx, pod, client.DryRunAll)`:                                  false,
		`return r.client.Get(ctx, key, pod)`:                                                  false,
		`names.Delete(name); timer.Stop(); return hash.Update(sum, text)`:                     false,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\n\nfunc (r *R) write(parent context.Context) any {\n"+body+"\n}\n", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := writesIn([]parsedFile{{"controllers/x/x.go", file}})["controllers/x/x.go write"]; got != want {
			t.Errorf("found is %t: %s", got, body)
		}
	}
}

// The test names a write that is reached past the point, and the function that reaches it.
func TestAWriteThatIsReachedWithoutItsPointIsTold(t *testing.T) {
	var files []parsedFile
	for path, text := range map[string]string{
		"controllers/x/x.go": `package x
import ("context"; points "github.com/regatta-sh/regatta/engine/decision/rollout"; "github.com/regatta-sh/regatta/controllers/y")
func (r *R) Reconcile(ctx context.Context) { if r.ask(ctx) { r.act.Move(ctx, 1) } }
func (r *R) ask(ctx context.Context) bool { return decide(ctx, points.PlanPoint()) }
func (r *R) Start(ctx context.Context) { y.Watch(ctx) }`,
		"controllers/y/y.go": `package y
import "context"
type Mover interface { Move(ctx context.Context, n int) }
func (m *mover) Move(ctx context.Context, n int) { m.patch(ctx) }
func (m *mover) Tell(ctx context.Context) { m.patch(ctx) }
func Watch(ctx context.Context) { later(ctx, func() { m.Tell(ctx) }) }
func (m *mover) patch(ctx context.Context) { m.client.Patch(ctx, m.pod, m.change) }`,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, parsedFile{path, file})
	}
	g := graphOf(files)
	if got := g.unaskedEntries("controllers/y/y.go patch", "rollout/plan"); !slices.Equal(got, []string{"controllers/x/x.go Start"}) {
		t.Errorf("without its point it is reached from %q", got)
	}
	if got := g.unaskedEntries("controllers/y/y.go Move", "rollout/plan"); got != nil {
		t.Errorf("a write after its point is reported: %q", got)
	}
}
