// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/podmeta"
	"github.com/regatta-sh/regatta/controllers/workload/containerstatus"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// otherOf returns the other container of a hot pair.
func otherOf(name, one string) string {
	first, second := podmeta.HotPair(name)
	if one == first {
		return second
	}
	return first
}

// hotTarget returns the container of a hot pair that gets the new image. It is the idle one, which has the empty image; in the middle of
// an upgrade it is the one that does not run yet, else the one that does not work. It is empty if the working container has the new
// image, or is being upgraded to it: an upgrade that has begun goes on with the version that it began with (SS-17).
func hotTarget(set *kruise.SidecarSet, c *kruise.SidecarContainer, pod *corev1.Pod) string {
	first, second := podmeta.HotPair(c.Name)
	working := podmeta.WorkingContainers(pod)[c.Name]
	target := otherOf(c.Name, working)
	for _, name := range []string{second, first} {
		if !containerstatus.IsReady(pod, name) || !isConsistent(set.Name, pod, []string{name}) {
			target = name
		}
	}
	for _, name := range []string{first, second} {
		if own := containerOf(pod, name); own != nil && own.Image == c.UpgradeStrategy.HotUpgradeEmptyImage {
			target = name
		}
	}
	has := func(name, image string) bool { own := containerOf(pod, name); return own == nil || own.Image == image }
	if has(working, c.Image) || has(target, c.UpgradeStrategy.HotUpgradeEmptyImage) && has(otherOf(c.Name, target), c.Image) {
		return ""
	}
	return target
}

// containerReset is a container of a hot pair that is not needed any more, and gets the empty image again.
type containerReset struct {
	name, container, image string
	// again is true if the spec requires the image of this container again, after the other one has taken over. It runs that image
	// already, so it would not restart and not take over.
	again bool
}

// findResets returns the resets that an upgrade has left to do in a pod.
func findResets(set *kruise.SidecarSet, pod *corev1.Pod) (out []containerReset) {
	working := podmeta.WorkingContainers(pod)
	for i := range set.Spec.Containers {
		c := &set.Spec.Containers[i]
		if !podmeta.IsHot(c) || working[c.Name] == "" {
			continue
		}
		idle := otherOf(c.Name, working[c.Name])
		if own := containerOf(pod, idle); own != nil && own.Image != c.UpgradeStrategy.HotUpgradeEmptyImage {
			other := containerOf(pod, working[c.Name])
			out = append(out, containerReset{name: c.Name, container: idle, image: c.UpgradeStrategy.HotUpgradeEmptyImage,
				again: own.Image == c.Image && other != nil && other.Image != c.Image && containerstatus.IsReady(pod, other.Name) && isConsistent(set.Name, pod, []string{other.Name})})
		}
	}
	return out
}

// wantedAgain returns the resets without which a pod cannot get the images of its SidecarSet. They wait for no other container:
// this update may be the only way to repair the pod.
func wantedAgain(list []containerReset) (out []containerReset) {
	for _, one := range list {
		if one.again {
			out = append(out, one)
		}
	}
	return out
}

// isResetDue reports whether the new containers have taken over, so that the containers that they replace can be reset (SS-13). The containers
// to reset need not be ready: an upgrade away from a version that is not ready would never end. Nor need the pod's own containers that
// have ended for good, such as the main containers of a Job. A new container that has ended has not taken over.
func isResetDue(set *kruise.SidecarSet, p *facts.Pod, list []containerReset) bool {
	left := map[string]bool{}
	for _, one := range list {
		left[one.container] = true
	}
	var others []string
	for _, name := range namesIn(set) {
		if !left[name] {
			others = append(others, name)
		}
	}
	if !isConsistent(set.Name, p.Pod, others) {
		return false
	}
	if p.Ready {
		return true
	}
	own, empty := namesIn(set), map[string]bool{}
	for i := range set.Spec.Containers {
		if c := &set.Spec.Containers[i]; podmeta.IsHot(c) {
			first, second := podmeta.HotPair(c.Name)
			for _, name := range []string{first, second} {
				if has := containerOf(p.Pod, name); has != nil && has.Image == c.UpgradeStrategy.HotUpgradeEmptyImage {
					empty[name] = true
				}
			}
		}
	}
	for i := range p.Status.ContainerStatuses {
		st := &p.Status.ContainerStatuses[i]
		ended := !slices.Contains(own, st.Name) && containerstatus.HasEnded(p.Pod, st.Name)
		if !st.Ready && !ended && !empty[st.Name] && !left[st.Name] {
			return false
		}
	}
	return true
}

// ScalePods implements rollout.Kind: it creates and deletes nothing. Hot resets come before all other updates (SS-12).
func (k *Kind) ScalePods(ctx context.Context, r *rollout.Round, f *rollout.Facts) (bool, error) {
	set := r.Workload.(*kruise.SidecarSet)
	if f.Strategy.Type != string(kruise.RollingUpdateSidecarSetStrategyType) || f.Strategy.Paused {
		return false, nil
	}
	lists, err := k.resetsNow(r, f)
	if err != nil || len(lists) == 0 {
		return false, err
	}
	return r.WriteBeside(ctx, f, func(p *facts.Pod) bool { return len(lists[p]) > 0 }, resettingFilter(set, f), func(p *facts.Pod) error {
		return k.resetContainers(ctx, r, f, p, lists[p])
	})
}

func (k *Kind) resetContainers(ctx context.Context, r *rollout.Round, f *rollout.Facts, p *facts.Pod, list []containerReset) error {
	set, pod := r.Workload.(*kruise.SidecarSet), p.DeepCopy()
	for _, one := range list {
		if err := setImage(set, pod, one.container, one.image, metav1.NewTime(f.Now)); err != nil {
			return err
		}
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, kruise.SidecarSetVersionPrefix+one.container, "0")
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, kruise.SidecarSetVersionAltPrefix+otherOf(one.name, one.container), "0")
	}
	err := k.patchPod(ctx, r, p.Pod, pod)
	for _, one := range list {
		switch {
		case err == nil:
			k.events.Event(p.Pod, corev1.EventTypeNormal, kruise.SidecarSetResetContainerSucceededReason,
				fmt.Sprintf("reset sidecar container image empty: %s", one.container))
		case !rollout.IsConflict(err):
			k.events.Event(p.Pod, corev1.EventTypeWarning, kruise.SidecarSetResetContainerFailedReason,
				fmt.Sprintf("reset sidecar container %s image empty failed: %v", one.container, err))
		}
	}
	return err
}
