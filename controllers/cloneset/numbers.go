package cloneset

import (
	"math"

	"k8s.io/apimachinery/pkg/util/intstr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/budget"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/engine/decision"
)

func replicas(set *kruise.CloneSet) int {
	if set.Spec.Replicas == nil {
		return 1
	}
	return int(*set.Spec.Replicas)
}

// rolling is the rolling update, nil for OnDelete (A-11: then there is
// no partition and no surge).
func rolling(set *kruise.CloneSet) *kruise.RollingUpdateCloneSetStrategy {
	if set.Spec.UpdateStrategy.Type == kruise.OnDeleteCloneSetUpdateStrategyType {
		return nil
	}
	if set.Spec.UpdateStrategy.RollingUpdate == nil {
		return &kruise.RollingUpdateCloneSetStrategy{}
	}
	return set.Spec.UpdateStrategy.RollingUpdate
}

// resolve turns the strategy into numbers of pods. maxUnavailable rounds up
// without surge, but down where there is no rolling update to name it. A value that does not
// parse cannot get past admission; should one be there all the same, it counts
// as nothing allowed, except a partition, which CS-01 reads as 0.
func resolve(set *kruise.CloneSet) (decision.Strategy, error) {
	n := replicas(set)
	s := decision.Strategy{Type: string(kruise.RollingUpdateCloneSetUpdateStrategyType), Policy: string(kruise.RecreatePodUpdatePolicyType)}
	var errs firstError
	ru := rolling(set)
	if ru == nil {
		s.Type = string(kruise.OnDeleteCloneSetUpdateStrategyType)
		s.MaxUnavailable = errs.of(budget.Percent(intstr.FromString(kruise.DefaultCloneSetMaxUnavailable), n, false))
	} else {
		if ru.PodUpdatePolicy != "" {
			s.Policy = string(ru.PodUpdatePolicy)
		}
		s.Paused = ru.Paused
		s.Partition = errs.of(budget.Partition(ru.Partition, n))
		if ru.MaxSurge != nil && !ru.Paused {
			s.MaxSurge = errs.of(budget.Percent(*ru.MaxSurge, n, true))
		}
		unavailable := intstr.FromString(kruise.DefaultCloneSetMaxUnavailable)
		if ru.MaxUnavailable != nil {
			unavailable = *ru.MaxUnavailable
		}
		up := s.MaxSurge == 0 && set.Spec.UpdateStrategy.RollingUpdate != nil
		s.MaxUnavailable = errs.of(budget.Percent(unavailable, n, up))
		if p := ru.PriorityStrategy; p != nil {
			for _, t := range p.WeightPriority {
				s.Weights = append(s.Weights, int(t.Weight))
			}
			for _, t := range p.OrderPriority {
				s.OrderKeys = append(s.OrderKeys, t.OrderedKey)
			}
		}
		for _, t := range ru.ScatterStrategy {
			s.Scatter = append(s.Scatter, decision.ScatterTerm{Key: t.Key, Value: t.Value})
		}
	}
	s.ScaleMaxUnavailable = math.MaxInt32
	if m := set.Spec.ScaleStrategy.MaxUnavailable; m != nil {
		s.ScaleMaxUnavailable = errs.of(budget.Percent(*m, n, true))
	}
	return s, errs.err
}

type firstError struct{ err error }

func (f *firstError) of(n int, err error) int {
	if f.err == nil {
		f.err = err
	}
	return n
}

// diff works out the differences of CS-01. In the scale phase a pod that
// prepares its update may count as updated already, by a gate.
func (w *world) diff(scalePhase bool) budget.Diff {
	q := budget.Question{
		Replicas: replicas(w.set), Partition: w.strategy.Partition,
		MaxSurge: w.strategy.MaxSurge, MaxUnavailable: w.strategy.MaxUnavailable,
		Rollback:               w.gates.PartitionRollback && w.history.Current.Name != w.history.Update.Name,
		ExcludePreparingDelete: w.excludes(),
	}
	for _, p := range w.pods {
		side := &q.Old
		if p.Facts.Updated || (scalePhase && w.soonUpdated(p)) {
			side = &q.New
		}
		side.Total++
		switch {
		case p.State == kruise.LifecycleStatePreparingDelete:
			side.PreDeleting++
		case w.specified(p):
			side.ToDelete++
		case !p.Available(w.minReady, w.now):
			side.Unavailable++
		}
	}
	return budget.Compute(q)
}

// excludes says whether pods that prepare their deletion are left out of the
// replicas.
func (w *world) excludes() bool {
	return w.excludePD || w.set.Spec.ScaleStrategy.ExcludePreparingDelete
}

// soonUpdated says whether a pod counts as updated when pods are created and
// deleted, by a gate: it is about to be.
func (w *world) soonUpdated(p *facts.Pod) bool {
	return w.gates.PreparingUpdateAsUpdate && p.State == kruise.LifecycleStatePreparingUpdate
}

// completes says whether pods that count as updated, by a gate, before they are have
// to be: the scale phase then creates the missing pods at the current revision. Where
// it cannot, because these pods are as many as may be unavailable, they go back.
func (w *world) completes(d budget.Diff) bool {
	return w.gates.PreparingUpdateAsUpdate && d.Missing > 0 && d.TotalUnavailable < w.strategy.ScaleMaxUnavailable
}

// onDelete says whether pods are only updated by whoever deletes them.
func (w *world) onDelete() bool {
	return w.strategy.Type == string(kruise.OnDeleteCloneSetUpdateStrategyType)
}

// updated says whether a label names the update revision.
func (w *world) updated(label string) bool { return revision.Same(label, w.history.Update.Name) }
