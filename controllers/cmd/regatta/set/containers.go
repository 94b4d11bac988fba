// SPDX-License-Identifier: Apache-2.0

package set

import (
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"

	"fmt"
	"path"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
)

// container is a container of a pod spec. A change of its fields changes the object.
type container struct {
	name string
	// path is where the object has it, such as spec.template.spec.containers[0].
	path   string
	fields map[string]any
}

// readContainers returns the containers of a pod spec, and then its init containers.
func readContainers(object *unstructured.Unstructured, podSpec edit.Path) ([]container, error) {
	var out []container
	for _, field := range []string{"containers", "initContainers"} {
		at := podSpec.String() + "." + field
		value, _, err := unstructured.NestedFieldNoCopy(object.Object, append(podSpec[:len(podSpec):len(podSpec)], field)...)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", at, err)
		}
		entries, err := readNamedEntries(value, at)
		if err != nil {
			return nil, err
		}
		for i, e := range entries {
			out = append(out, container{e.name, fmt.Sprintf("%s[%d]", at, i), e.fields})
		}
	}
	if len(out) == 0 {
		return nil, exit.RefusalErrorf("%s has no containers", podSpec)
	}
	return out, nil
}

// namedEntry is an entry of a list of objects with names.
type namedEntry struct {
	name   string
	fields map[string]any
}

// readNamedEntries reads a list of objects with names.
func readNamedEntries(value any, at string) ([]namedEntry, error) {
	if value == nil {
		return nil, nil
	}
	list, ok := value.([]any)
	if !ok {
		return nil, fmt.Errorf("%s is %s; it must be a list", at, edit.DescribeType(value))
	}
	out := make([]namedEntry, 0, len(list))
	for i, entry := range list {
		fields, ok := entry.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s[%d] is %s; it must be an object", at, i, edit.DescribeType(entry))
		}
		name, ok := fields["name"].(string)
		if !ok || name == "" {
			return nil, fmt.Errorf("%s[%d].name is missing or no string", at, i)
		}
		out = append(out, namedEntry{name, fields})
	}
	return out, nil
}

// readObject returns the object in a field, nil if there is none.
func readObject(fields map[string]any, field, at string) (map[string]any, error) {
	value := fields[field]
	if value == nil {
		return nil, nil
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s.%s is %s; it must be an object", at, field, edit.DescribeType(value))
	}
	return object, nil
}

// pattern is the flag that selects containers.
type pattern string

func (p *pattern) addTo(flags *pflag.FlagSet) {
	flags.StringVarP((*string)(p), "containers", "c", "*", "the name of the containers to change; * matches any part of it")
}

// validateFlag checks the flag before the cluster is asked.
func (p pattern) validateFlag() error {
	if _, err := path.Match(string(p), ""); err != nil || p == "" {
		return exit.UsageErrorf("--containers is %q; want the name of a container, with * for any part of it", string(p))
	}
	return nil
}

// selectContainers returns the containers whose names match.
func (p pattern) selectContainers(all []container) ([]container, error) {
	var out []container
	for _, c := range all {
		if ok, err := path.Match(string(p), c.name); err == nil && ok {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return nil, exit.RefusalErrorf("--containers is %q, which matches no container; there are %s", string(p), joinNames(all))
	}
	return out, nil
}

// maxNames is how many names a message lists.
const maxNames = 20

// joinNames lists the names of containers.
func joinNames(all []container) string {
	var names []string
	for i, c := range all {
		if i == maxNames {
			return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), len(all)-maxNames)
		}
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}
