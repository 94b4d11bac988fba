// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"

	kjson "sigs.k8s.io/json"
)

// WarnUnknownFields warns about misspelled fields below some paths, which the schema does not describe, so that the API server does not
// warn. object is an empty object to decode into. A path such as spec.template is without the indexes of lists.
func (f *Findings) WarnUnknownFields(raw []byte, object any, paths ...string) {
	problems, err := kjson.UnmarshalStrict(raw, object)
	if err != nil {
		return // the decoding of the request has reported that
	}
	for _, problem := range problems {
		_, at, _ := strings.Cut(problem.Error(), `"`)
		for _, path := range paths {
			if strings.HasPrefix(at, path+".") || strings.HasPrefix(at, path+"[") {
				f.Warnings = append(f.Warnings, problem.Error())
				break
			}
		}
	}
}
