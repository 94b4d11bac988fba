// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	kannotation "github.com/regatta-sh/regatta/controllers/annotation"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// podAnnotation reads a pod's annotation under its present name or the name before
// release 1.0.
func podAnnotation(pod *corev1.Pod, key, legacy string) (string, bool) {
	if v, ok := pod.Annotations[key]; ok {
		return v, true
	}
	v, ok := pod.Annotations[legacy]
	return v, ok
}

// DecodeState reads the record of a pod's last in-place update, nil if it has none.
func DecodeState(pod *corev1.Pod) (*kruise.InPlaceUpdateState, error) {
	raw, ok := podAnnotation(pod, kruise.InPlaceUpdateStateKey, kruise.InPlaceUpdateStateLegacyKey)
	if !ok {
		return nil, nil
	}
	s, err := kannotation.Decode[*kruise.InPlaceUpdateState](kruise.InPlaceUpdateStateKey, raw)
	if err != nil {
		return nil, fmt.Errorf("pod %s: %w", pod.Name, err)
	}
	if s.LastContainerStatuses == nil { // OpenKruise writes null while the grace period runs
		s.LastContainerStatuses = map[string]kruise.InPlaceUpdateContainerStatus{}
	}
	return s, nil
}

// InGrace reports whether a pod waits for its grace period to end.
func InGrace(pod *corev1.Pod) bool {
	_, ok := podAnnotation(pod, kruise.InPlaceUpdateGraceKey, kruise.InPlaceUpdateGraceLegacyKey)
	return ok
}

func decodeGrace(pod *corev1.Pod) (*kruise.UpdateSpec, error) {
	raw, ok := podAnnotation(pod, kruise.InPlaceUpdateGraceKey, kruise.InPlaceUpdateGraceLegacyKey)
	if !ok {
		return nil, nil
	}
	s, err := kannotation.Decode[*kruise.UpdateSpec](kruise.InPlaceUpdateGraceKey, raw)
	if err != nil {
		return nil, fmt.Errorf("pod %s: %w", pod.Name, err)
	}
	return s, nil
}

// setState records the update on the pod, under the present name only.
func setState(pod *corev1.Pod, s *kruise.InPlaceUpdateState) error {
	raw, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encoding in-place update state: %w", err)
	}
	setAnnotation(pod, kruise.InPlaceUpdateStateKey, string(raw))
	delete(pod.Annotations, kruise.InPlaceUpdateStateLegacyKey)
	return nil
}

func setAnnotation(pod *corev1.Pod, key, value string) {
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[key] = value
}

func dropGrace(pod *corev1.Pod) {
	delete(pod.Annotations, kruise.InPlaceUpdateGraceKey)
	delete(pod.Annotations, kruise.InPlaceUpdateGraceLegacyKey)
}

// graceLeft is how long a pod still waits, in whole seconds rounded up.
func graceLeft(s *kruise.InPlaceUpdateState, seconds int32, now time.Time) time.Duration {
	left := time.Duration(seconds)*time.Second - now.Sub(s.UpdateTimestamp.Time)
	if left <= 0 {
		return 0
	}
	return (left + time.Second - 1).Truncate(time.Second)
}
