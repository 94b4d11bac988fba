// SPDX-License-Identifier: Apache-2.0

package budget

// Side counts the pods of one revision (CS-01).
type Side struct {
	Total       int // all pods
	PreDeleting int // in state PreparingDelete
	ToDelete    int // not PreparingDelete, and their deletion is requested
	Unavailable int // not PreparingDelete, deletion not requested, not available
}

// ActivePods is the number of pods that do not prepare their deletion.
func (s Side) ActivePods() int { return s.Total - s.PreDeleting }

// Question is what the differences depend on (CS-01).
type Question struct {
	Replicas, Partition      int
	MaxSurge, MaxUnavailable int
	// UpdateSurge bounds the surge of an update beside MaxSurge; nil means no other bound.
	UpdateSurge *int
	// Rollback is true when the partition may move pods back to the current
	// revision: the gate is on and the revisions differ.
	Rollback bool
	// ExcludePreparingDelete leaves pods in PreparingDelete out of the totals.
	ExcludePreparingDelete bool
	Old, New               Side
}

// Diff is the difference between the actual and the desired pods.
type Diff struct {
	// Up is how many pods are missing, and UpOld how many of these are to be at the old revision.
	Up, UpOld int
	// Down is how many pods are too many, and DownOld how many of these to delete from the old revision.
	Down, DownOld int
	// ReadyLimit is how many ready pods may be deleted.
	ReadyLimit int
	// Update is how many pods to move to the update revision; a negative number of pods moves back.
	Update int
	// Surplus is how many more pods of the old revision exist than the partition
	// keeps. If there are none, no pod of that revision has to be moved.
	Surplus int
	// Missing is how many more pods of the update revision the partition
	// leaves room for.
	Missing int
	// MaxUnavailable bounds how many pods are unavailable while pods are moved.
	MaxUnavailable int
	// TotalUnavailable counts the pods that are unavailable or prepare their deletion.
	TotalUnavailable int
	// UseSurge is how many pods beyond the replicas are wanted now.
	UseSurge int
}

// ComputeDiff computes the differences (CS-01). The surge is the larger of what requested
// deletions and an update need, never the sum.
func ComputeDiff(q Question) Diff {
	total := q.Old.Total + q.New.Total
	toDelete := q.Old.ToDelete + q.New.ToDelete
	preDeleting := q.Old.PreDeleting + q.New.PreDeleting
	d := Diff{TotalUnavailable: preDeleting + q.Old.Unavailable + q.New.Unavailable}

	oldDiff := q.Old.ActivePods() - q.Partition
	d.Surplus = max(oldDiff, 0)
	newDiff := q.New.ActivePods() - (q.Replicas - q.Partition)
	d.Missing = max(-newDiff, 0)
	if !q.Rollback {
		oldDiff, newDiff = max(oldDiff, 0), min(newDiff, 0)
	}

	useSurge, useSurgeOld := computeSurge(q, d.TotalUnavailable, toDelete, oldDiff, newDiff)
	d.UseSurge = useSurge
	wantTotal, wantOld := q.Replicas+useSurge, q.Partition+useSurgeOld
	haveTotal, haveOld := total, q.Old.Total
	if q.ExcludePreparingDelete {
		haveTotal, haveOld = total-preDeleting, q.Old.ActivePods()
	}

	if d.Up = max(wantTotal-haveTotal, 0); d.Up > 0 {
		d.UpOld = max(wantOld-haveOld, 0)
	}
	if d.Down = max(haveTotal-toDelete-wantTotal, 0); d.Down > 0 {
		d.DownOld = max(haveOld-q.Old.ToDelete-wantOld, 0)
	}
	if toDelete > 0 || d.Down > 0 {
		d.ReadyLimit = max(q.MaxUnavailable+(total-q.Replicas)-d.TotalUnavailable, 0)
	}
	switch {
	case (oldDiff > 0) == (newDiff > 0) && oldDiff != 0 && newDiff != 0:
		// Both revisions have too many pods, or too few: that is for scaling
		// alone. CS-01 would move some pods from one to the other, and the
		// scaling after that would move as many back.
	case absoluteValue(oldDiff) <= absoluteValue(newDiff):
		d.Update = oldDiff
	default:
		d.Update = -newDiff
	}
	if d.Update != 0 {
		d.MaxUnavailable = q.MaxUnavailable + total - q.Replicas
	}
	return d
}

func computeSurge(q Question, totalUnavailable, toDelete, oldDiff, newDiff int) (use, useOld int) {
	if q.MaxSurge <= 0 {
		return 0, 0
	}
	var scale, scaleOld int
	if toDelete > 0 {
		scale = min(max(totalUnavailable+toDelete-q.MaxUnavailable, 0), toDelete)
		scaleOld = max(scale-q.New.ToDelete, 0)
	}
	var update, updateOld int
	if oldDiff*newDiff < 0 {
		fromOld := absoluteValue(oldDiff) <= absoluteValue(newDiff)
		update = min(absoluteValue(oldDiff), absoluteValue(newDiff))
		if (fromOld && oldDiff < 0) || (!fromOld && newDiff > 0) {
			updateOld = update
		}
	}
	if q.UpdateSurge != nil {
		update = min(update, *q.UpdateSurge)
		updateOld = min(updateOld, update)
	}
	if scale >= update {
		use = min(q.MaxSurge, scale)
		return use, min(use, scaleOld)
	}
	use = min(q.MaxSurge, update)
	return use, min(use, updateOld)
}

func absoluteValue(n int) int {
	if n < 0 {
		return -n
	}
	return n
}
