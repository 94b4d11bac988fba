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

// claimTemplates are those that pods of a revision have: of the update revision those of the set.
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

// hadClaims reports whether pods of a revision may have claims: it records some, or says nothing of
// them and mounts volumes that its template does not have.
func hadClaims(rev *appsv1.ControllerRevision) bool {
	if recorded, ok := revision.ClaimTemplates(rev); ok {
		return len(recorded) > 0
	}
	template, err := revision.DecodeTemplate(rev)
	return err == nil && len(claims.UnknownMounts(&template.Spec)) > 0
}

// findLostVolumes points volumes that a new pod mounts and does not have at the claims that earlier
// pods of the ordinal left: the set has lost their templates since, and the revision does not record
// them.
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

// explainRefusal says what helps a pod that was not created because nothing says what it mounts.
func (s *scaler) explainRefusal(pod *corev1.Pod, rev *appsv1.ControllerRevision, err error) error {
	lost := claims.UnknownMounts(&pod.Spec)
	if len(lost) == 0 || rev.Name == s.t.UpdateRevision() {
		return err
	}
	return fmt.Errorf("%w: revision %s mounts %s, for which spec.volumeClaimTemplates has no template any more and the pod has no claim: "+
		"add the template again, or lower spec.updateStrategy.rollingUpdate.partition", err, rev.Name, strings.Join(lost, ", "))
}
