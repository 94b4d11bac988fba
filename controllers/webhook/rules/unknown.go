package rules

import (
	"strings"

	kjson "sigs.k8s.io/json"
)

// Unknown warns of misspelt fields below some paths, which the schema has no form for, so that nobody else tells. The
// object is an empty one, to read into. A path such as spec.template is without the indexes of lists.
func (f *Findings) Unknown(raw []byte, object any, paths ...string) {
	problems, err := kjson.UnmarshalStrict(raw, object)
	if err != nil {
		return // who decoded it has told that
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
