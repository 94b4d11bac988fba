// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/controllers/workload/claims"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
)

// claimTemplates are the claim templates of a revision: for the update revision, those of the set.
func (s *scaler) claimTemplates(rev *appsv1.ControllerRevision) []corev1.PersistentVolumeClaim {
	own := s.set.Spec.VolumeClaimTemplates
	if rev == nil || rev.Name == s.t.UpdateRevision() {
		return own
	}
	s.recording.Lock()
	defer s.recording.Unlock()
	out, known := s.recorded[rev.Name]
	if !known {
		out = revision.ClaimTemplatesOf(rev, own)
		s.recorded[rev.Name] = out
	}
	return out
}

// hadClaims reports whether pods of a revision may have claims. Either the revision records claims, or it records nothing
// about them and its template mounts volumes that it does not have.
func hadClaims(rev *appsv1.ControllerRevision) bool {
	if recorded, ok := revision.ClaimTemplates(rev); ok {
		return len(recorded) > 0
	}
	template, err := revision.DecodeTemplate(rev)
	return err == nil && len(claims.UnknownMounts(&template.Spec)) > 0
}

// findLostVolumes adds the volumes that a new pod mounts but does not have, and points them at the claims of earlier
// pods of the ordinal. Such volumes are missing when the set has lost their claim templates and the revision does not
// record them.
func (s *scaler) findLostVolumes(pod *corev1.Pod, rev *appsv1.ControllerRevision, ordinal int) {
	if rev.Name == s.t.UpdateRevision() {
		return
	}
	for _, name := range claims.UnknownMounts(&pod.Spec) {
		claim := claimName(s.set, name, ordinal)
		if c := s.claims.named[claim]; c != nil && c.DeletionTimestamp == nil {
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			}})
		}
	}
}

// explainRefusal adds to an error what the user can do if a pod was refused because volumes that it mounts are not defined.
func (s *scaler) explainRefusal(pod *corev1.Pod, rev *appsv1.ControllerRevision, err error) error {
	lost := claims.UnknownMounts(&pod.Spec)
	if len(lost) == 0 || rev.Name == s.t.UpdateRevision() {
		return err
	}
	return fmt.Errorf("%w: revision %s mounts %s, for which spec.volumeClaimTemplates has no template any more and the pod has no claim: "+
		"add the template again, or lower spec.updateStrategy.rollingUpdate.partition", err, rev.Name, strings.Join(lost, ", "))
}
