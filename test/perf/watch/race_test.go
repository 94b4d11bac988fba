// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"
	"time"
)

func TestRaceTakesTimes(t *testing.T) {
	w := &Watcher{views: map[string]*View{}}
	r := w.Start(map[string]Goal{"a": {
		Pods:     4,
		First:    func(v *View) bool { return v.Images["new"].Pods > 0 },
		Complete: func(v *View) bool { return v.Images["new"].Available == 4 },
	}})
	at := func(seconds int, available, updated int) {
		v := &View{Available: available, Images: map[string]Image{"new": {Pods: updated, Available: updated}}}
		r.look("a", v, r.started.Add(time.Duration(seconds)*time.Second))
	}
	at(1, 4, 0) // nothing yet: the time before the first sign does not count
	at(2, 3, 1) // one missing for two seconds
	at(4, 2, 2) // two missing for one
	at(5, 4, 4) // done
	at(9, 0, 0) // what comes later does not matter
	select {
	case <-r.done:
	default:
		t.Fatal("the race is not over")
	}
	got := r.lanes["a"].result
	want := Result{First: 2 * time.Second, Complete: 5 * time.Second, MostMissing: 2, MeanMissing: 4.0 / 3}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestViewCountsPods(t *testing.T) {
	v := &View{Images: map[string]Image{}}
	a := pod{images: []string{"x:1", "side:1"}, available: true}
	b := pod{images: []string{"x:2"}}
	v.count(a, 1)
	v.count(b, 1)
	v.count(pod{images: []string{"x:1"}, terminating: true}, 1)
	if v.Pods != 2 || v.Available != 1 || v.Terminating != 1 || v.Images["x:1"] != (Image{1, 1}) || v.Images["side:1"] != (Image{1, 1}) {
		t.Errorf("got %+v", v)
	}
	v.count(a, -1)
	if v.Pods != 1 || v.Available != 0 || v.Images["x:1"] != (Image{}) {
		t.Errorf("got %+v after one left", v)
	}
}
