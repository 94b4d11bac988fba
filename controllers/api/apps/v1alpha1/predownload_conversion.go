// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/api/conversiondata"
)

// An annotation that says nothing (no number, no percentage) is no field: it stays on the object and is ignored.

func inPlaceToHub(in *v1beta1.InPlaceUpdateStrategy, annotations map[string]string) *v1beta1.InPlaceUpdateStrategy {
	out := v1beta1.InPlaceUpdateStrategy{
		ImagePreDownloadParallelism:         parseParallelism(annotations[v1beta1.ImagePreDownloadParallelismKey]),
		ImagePreDownloadTimeoutSeconds:      parseInt32(annotations[v1beta1.ImagePreDownloadTimeoutSecondsKey]),
		ImagePreDownloadMinUpdatedReadyPods: parseInt32(annotations[v1beta1.ImagePreDownloadMinUpdatedReadyPodsKey]),
	}
	if in != nil {
		out.GracePeriodSeconds = in.GracePeriodSeconds
	} else if !hasPreDownload(&out) {
		return nil
	}
	return &out
}

func inPlaceFromHub(in *v1beta1.InPlaceUpdateStrategy, annotations *map[string]string) *v1beta1.InPlaceUpdateStrategy {
	fields := v1beta1.InPlaceUpdateStrategy{}
	if in != nil {
		fields = *in
	}
	syncAnnotation(annotations, v1beta1.ImagePreDownloadParallelismKey, fields.ImagePreDownloadParallelism, parseParallelism,
		func(v *intstr.IntOrString) string { return v.String() })
	syncAnnotation(annotations, v1beta1.ImagePreDownloadTimeoutSecondsKey, fields.ImagePreDownloadTimeoutSeconds, parseInt32, formatInt32)
	syncAnnotation(annotations, v1beta1.ImagePreDownloadMinUpdatedReadyPodsKey, fields.ImagePreDownloadMinUpdatedReadyPods, parseInt32, formatInt32)
	if in == nil || in.GracePeriodSeconds == 0 && hasPreDownload(in) {
		return nil // the block was there only for what annotations say here
	}
	return &v1beta1.InPlaceUpdateStrategy{GracePeriodSeconds: in.GracePeriodSeconds}
}

// syncAnnotation makes an annotation say what the field says, in the user's own spelling where that means the same.
func syncAnnotation[T comparable](annotations *map[string]string, key string, field *T, parse func(string) *T, format func(*T) string) {
	said := parse((*annotations)[key])
	switch {
	case field == nil && said != nil:
		conversiondata.RemoveMetadata(annotations, key)
	case field != nil && (said == nil || *said != *field):
		conversiondata.SetMetadata(annotations, key, format(field))
	}
}

func hasPreDownload(in *v1beta1.InPlaceUpdateStrategy) bool {
	return in.ImagePreDownloadParallelism != nil || in.ImagePreDownloadTimeoutSeconds != nil ||
		in.ImagePreDownloadMinUpdatedReadyPods != nil
}

func parseParallelism(text string) *intstr.IntOrString {
	if number := parseInt32(text); number != nil {
		value := intstr.FromInt32(*number)
		return &value
	}
	percent, ok := strings.CutSuffix(text, "%")
	if _, err := strconv.ParseUint(percent, 10, 31); !ok || err != nil {
		return nil
	}
	value := intstr.FromString(text)
	return &value
}

func parseInt32(text string) *int32 {
	number, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return nil
	}
	value := int32(number)
	return &value
}

func formatInt32(value *int32) string { return strconv.FormatInt(int64(*value), 10) }
