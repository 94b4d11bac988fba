// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"cmp"
	"encoding/json"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
)

// TestRankIsTheOrderOfTheSpecification compares what the policy says of each two
// pods with a comparator written from.
func TestRankIsTheOrderOfTheSpecification(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rollout.RankInput{Strategy: drawStrategy(t)}
		in.Pods = drawPods(t, in.Strategy)
		out := ask(t, rollout.RankPoint(), in)
		for i, a := range in.Pods {
			for j, b := range in.Pods {
				want := cmp.Or(comparePriority(in.Strategy, a, b), compareActive(a, b))
				if got := compareKeys(out.Keys[i], out.Keys[j], out.Descending); got != want {
					t.Fatalf("keys %v and %v compare to %d, want %d for\n%+v\n%+v", out.Keys[i], out.Keys[j], got, want, a, b)
				}
				want = cmp.Compare(boolean(b.State == "PreparingUpdate"), boolean(a.State == "PreparingUpdate"))
				if got := compareKeys(out.Lead[i], out.Lead[j], nil); got != want {
					t.Fatalf("leads %v and %v compare to %d, want %d", out.Lead[i], out.Lead[j], got, want)
				}
			}
		}
	})
}

// TestPlanStaysWithinItsQuestion asks for no more than the facts allow.
func TestPlanStaysWithinItsQuestion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rollout.PlanInput{
			Strategy: drawStrategy(t),
			Update:   rapid.IntRange(-50, 50).Draw(t, "update"), MaxUnavailable: rapid.IntRange(-50, 50).Draw(t, "maxUnavailable"),
		}
		out := ask(t, rollout.PlanPoint(), in)
		if out.Limit > max(in.Update, -in.Update) || out.MaxUnavailable > in.MaxUnavailable {
			t.Fatalf("asked for %d pods with %d unavailable, answered %+v", in.Update, in.MaxUnavailable, out)
		}
		stopped := in.Strategy.Paused || in.Strategy.Type != "RollingUpdate"
		if stopped && (out.Limit > 0 || len(out.Holds) == 0) || !stopped && len(out.Holds) > 0 {
			t.Fatalf("stopped is %v, answered %+v", stopped, out)
		}
	})
}

// TestScaleStaysWithinItsQuestion creates and deletes no more than is missing or
// too many, never both, and says why where it is less.
func TestScaleStaysWithinItsQuestion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.IntRange(0, 20)
		in := rollout.ScaleInput{
			Strategy: drawStrategy(t), Up: rapid.SampledFrom([]int{0, 0, 0, 1, 9}).Draw(t, "up"), UpCurrent: number.Draw(t, "upCurrent"),
			TotalUnavailable: number.Draw(t, "totalUnavailable"), Down: number.Draw(t, "down"), DownCurrent: number.Draw(t, "downCurrent"),
			PlannedDeletes: rapid.SampledFrom([]int{0, 0, 1}).Draw(t, "plannedDeletes"),
		}
		for _, pod := range drawPods(t, in.Strategy) {
			in.Pods = append(in.Pods, rollout.VictimFacts{PodFacts: pod, Available: min(pod.Ready, rapid.IntRange(0, 1).Draw(t, "available"))})
		}
		out := ask(t, rollout.ScalePoint(), in)
		allowed := max(in.Strategy.ScaleMaxUnavailable-in.TotalUnavailable, 0)
		switch {
		case out.Create > min(in.Up, allowed) || out.CreateCurrent > min(out.Create, in.UpCurrent):
			t.Fatalf("created too many: %+v", out)
		case out.Delete > in.Down || out.DeleteCurrent > min(out.Delete, in.DownCurrent):
			t.Fatalf("deleted too many: %+v", out)
		case out.Delete > 0 && (in.Up > 0 || in.PlannedDeletes > 0):
			t.Fatalf("deleted while others come or go: %+v", out)
		case (out.Create < in.Up || out.Delete < in.Down) != (len(out.Holds) > 0):
			t.Fatalf("did not say why, or said it without need: %+v", out)
		}
		for i := range out.Keys {
			for j := range out.Keys {
				a, b := in.Pods[i], in.Pods[j]
				got := compareKeys(append(out.Keys[i], out.Then[i]...), append(out.Keys[j], out.Then[j]...), out.Descending)
				if want := compareVictims(a, b); got != want {
					t.Fatalf("victims compare to %d, want %d for\n%+v\n%+v", got, want, a, b)
				}
			}
		}
	})
}

// TestChangeNeverDoesWhatThePolicyForbids covers every mix of obstacles.
func TestChangeNeverDoesWhatThePolicyForbids(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		coin := rapid.Bool()
		in := rollout.ChangeInput{
			Policy: rapid.SampledFrom([]string{"ReCreate", "InPlaceIfPossible", "InPlaceOnly", ""}).Draw(t, "policy"),
			Known:  coin.Draw(t, "known"), QoSChanged: coin.Draw(t, "qosChanged"), ClaimsChanged: coin.Draw(t, "claimsChanged"),
			Gates: rollout.ChangeGates{VerticalScaling: coin.Draw(t, "verticalScaling"), RecreateOnNewClaims: coin.Draw(t, "recreateOnNewClaims")},
		}
		in.Workload.Kind = rapid.SampledFrom([]string{"CloneSet", "StatefulSet"}).Draw(t, "kind")
		classes := rapid.SampledFrom([]string{rollout.ChangeImage, rollout.ChangeMetadata, rollout.ChangeResources, rollout.ChangeOther})
		possible := in.Known && !(in.Gates.RecreateOnNewClaims && in.ClaimsChanged && !(in.Workload.Kind == "CloneSet" && in.Policy == "InPlaceOnly"))
		for _, class := range rapid.SliceOfN(classes, 0, 3).Draw(t, "classes") {
			in.Changes = append(in.Changes, rollout.TemplateChange{Class: class, Op: "replace", Path: "/" + class})
			possible = possible && class != rollout.ChangeOther && (class != rollout.ChangeResources || in.Gates.VerticalScaling && !in.QoSChanged)
		}
		want := map[string]string{"ReCreate": rollout.Recreate, "InPlaceIfPossible": rollout.Recreate, "InPlaceOnly": rollout.Reject, "": rollout.Reject}[in.Policy]
		in.RestartRequested = coin.Draw(t, "restartRequested")
		if possible && (in.Policy == "InPlaceIfPossible" && !in.RestartRequested || in.Policy == "InPlaceOnly") {
			want = rollout.InPlace
		}
		if out := ask(t, rollout.ChangePoint(), in); out.Action != want || out.Reason == "" || out.Message == "" {
			t.Fatalf("answered %+v, want %s", out, want)
		}
	})
}

// ask evaluates a point and refuses what the point's own check refuses.
func ask[In, Out any](t *rapid.T, point decision.Point[In, Out], in In) Out {
	text, err := json.Marshal(evaluate(t, point.Name, in, nil))
	if err != nil {
		t.Fatal(err)
	}
	var out Out
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	if point.Check != nil {
		if err := point.Check(in, out); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func drawStrategy(t *rapid.T) rollout.Strategy {
	return rollout.Strategy{
		Type:                rapid.SampledFrom([]string{"RollingUpdate", "RollingUpdate", "OnDelete", ""}).Draw(t, "type"),
		Paused:              rapid.IntRange(0, 3).Draw(t, "paused") == 0,
		ScaleMaxUnavailable: rapid.SampledFrom([]int{0, 5, 10, math.MaxInt32}).Draw(t, "scaleMaxUnavailable"),
		Weights:             rapid.SliceOfN(rapid.IntRange(0, 3), 0, 3).Draw(t, "weights"),
		OrderKeys:           rapid.SliceOfN(rapid.SampledFrom([]string{"tier", "shard"}), 0, 2).Draw(t, "orderKeys"),
	}
}
