// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	chart "github.com/regatta-sh/regatta/charts/kruise"
	"github.com/regatta-sh/regatta/controllers/features"
)

// release is what Helm keeps of the installation.
type release struct {
	name, namespace string
	// values are those that users set; an upgrade without values keeps them.
	values map[string]any
	// unset are the paths of the values that the chart refuses, or that only OpenKruise has.
	unset []string
	// set are the values that the command changes, by their paths.
	set map[string]string
	// rewritesGates is true if the chart refuses the feature gates in the form that users wrote.
	rewritesGates bool
}

func (r release) ownsObject(o client.Object) bool {
	return r.name != "" && o.GetAnnotations()[ReleaseName] == r.name && o.GetAnnotations()[ReleaseNamespace] == r.namespace
}

// textValue is a value that a user set, or its default.
func (r release) textValue(path, otherwise string) string {
	v, found, err := unstructured.NestedFieldNoCopy(r.values, strings.Split(path, ".")...)
	if !found || err != nil || v == nil { // null is the default
		return otherwise
	}
	return fmt.Sprint(v)
}

func (r release) numberValue(path string, otherwise int64) int64 {
	n, err := strconv.ParseInt(r.textValue(path, ""), 10, 64)
	if err != nil {
		return otherwise
	}
	return n
}

// checkRelease reads the release and reports which of its values the chart refuses.
func (l *look) checkRelease(ctx context.Context) error {
	l.release = release{name: l.manager.Annotations[ReleaseName], namespace: l.manager.Annotations[ReleaseNamespace]}
	if l.release.name == "" {
		l.addRow(Row{Effect: Blocks, Object: "Deployment kruise-controller-manager", Field: "metadata.annotations", There: "of no release of Helm", Here: "of release kruise",
			Do: "helm install kruise charts/kruise --take-ownership, with Helm 3.17 or newer; what only OpenKruise has stays"})
		return nil
	}
	object := "Release " + l.release.namespace + "/" + l.release.name
	found, err := l.readRevision(ctx, object)
	if apierrors.IsForbidden(err) || err == nil && !found {
		l.addRow(Row{Effect: Note, Object: object, Field: "values", There: "cannot be read", Here: "kept by the upgrade",
			Do: "look at helm get values " + quoteForShell(l.release.name) + " -n " + quoteForShell(l.release.namespace)})
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the release: %w", err)
	}
	return l.checkValues(object)
}

// checkValues reports the values that Helm would refuse before it changes anything.
func (l *look) checkValues(object string) error {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(chart.Schema))
	if err != nil {
		return fmt.Errorf("parsing the schema of the values: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("values.schema.json", doc); err != nil {
		return fmt.Errorf("reading the schema of the values: %w", err)
	}
	schema, err := compiler.Compile("values.schema.json")
	if err != nil {
		return fmt.Errorf("compiling the schema of the values: %w", err)
	}
	values := map[string]any{}
	if err := yaml.Unmarshal(chart.Values, &values); err != nil {
		return fmt.Errorf("reading the defaults of the values: %w", err)
	}
	mergeValues(values, l.release.values)
	var wrong *jsonschema.ValidationError
	if err := schema.Validate(values); errors.As(err, &wrong) {
		l.addRefusedValues(object, wrong)
	}
	l.reportImages(object)
	l.reportPorts(object, values)
	if groups, _, _ := unstructured.NestedSlice(values, "installation", "roleListGroups"); len(groups) > 0 {
		for _, g := range groups {
			if g == "*" || g == "" {
				l.addRow(Row{Effect: Differs, Object: object, Field: "installation.roleListGroups", There: strconv.Quote(fmt.Sprint(g)), Here: "no effect: it would let the manager list every secret", Do: "name the groups of the CRDs that are protected by Cascading"})
			}
		}
	}
	if managed, found, _ := unstructured.NestedBool(values, "crds", "managed"); found && !managed {
		l.addRow(Row{Effect: Note, Object: object, Field: "crds.managed", There: "false", Here: "kept", Do: "apply the CRDs of charts/kruise yourself before the upgrade"})
	}
	return nil
}

// reportPorts reports a port of the release that a listener uses which only this chart has, and makes the command move that
// listener.
func (l *look) reportPorts(object string, values map[string]any) {
	const own = "manager.decisions.port"
	others := []string{"manager.metrics.port", "manager.webhook.port", "manager.healthProbe.port", "manager.pprofAddr"}
	if onNode, _, _ := unstructured.NestedBool(values, "manager", "hostNetwork"); onNode && !strings.Contains(l.release.textValue(gatesValue, ""), string(features.KruiseDaemon)+"=false") {
		others = append(others, "daemon.port")
		if profiles, _, _ := unstructured.NestedBool(values, "daemon", "enablePprof"); profiles {
			others = append(others, "daemon.pprofAddr")
		}
	}
	port, taken, clashes := readPort(values, own), map[string]bool{}, ""
	for _, path := range others {
		if taken[readPort(values, path)] = true; readPort(values, path) == port {
			clashes = path
		}
	}
	if clashes == "" {
		return
	}
	free := 8444
	for taken[strconv.Itoa(free)] {
		free++
	}
	l.addRow(Row{Effect: Blocks, Object: object, Field: clashes, There: port, Here: "refused: " + own + " is the same",
		Do: "move that one, as the command below does"})
	l.release.setValue(own, strconv.Itoa(free))
}

// lastPort is the port at the end of an address, or a port alone.
var lastPort = regexp.MustCompile(`[0-9]+$`)

// readPort is the port of a value.
func readPort(values map[string]any, path string) string {
	v, _, _ := unstructured.NestedFieldNoCopy(values, strings.Split(path, ".")...)
	return lastPort.FindString(fmt.Sprint(v))
}

// mergeValues does what Helm does with values of users: the keys of a map replace defaults one by one,
// and null removes a key.
func mergeValues(into, from map[string]any) {
	for key, v := range from {
		below, isMap := v.(map[string]any)
		defaults, wasMap := into[key].(map[string]any)
		switch {
		case v == nil:
			delete(into, key)
		case isMap && wasMap:
			mergeValues(defaults, below)
		default:
			into[key] = v
		}
	}
}

// addRefusedValues adds a row for each value that is wrong.
func (l *look) addRefusedValues(object string, wrong *jsonschema.ValidationError) {
	if len(wrong.Causes) > 0 {
		for _, cause := range wrong.Causes {
			l.addRefusedValues(object, cause)
		}
		return
	}
	unknown, hasUnknown := wrong.ErrorKind.(*kind.AdditionalProperties)
	if hasUnknown {
		slices.Sort(unknown.Properties) // the error lists them, too
	}
	text := strings.TrimSpace(wrong.Error())
	if _, after, ok := strings.Cut(text, ": "); ok {
		text = after
	}
	do := "take it away, as the command below does"
	_, isMissing := wrong.ErrorKind.(*kind.Required)
	switch {
	case hasUnknown:
		for _, name := range unknown.Properties {
			l.release.unsetValue(pathOf(append(slices.Clone(wrong.InstanceLocation), name)))
		}
	case isMissing: // removing the map that lacks the value would remove all that users set in it
		do = "set it with --set: a value of null takes the default away"
	case slices.Equal(wrong.InstanceLocation, []string{gatesValue}):
		do = "write it as the command below does"
		l.release.rewritesGates = true
	case len(wrong.InstanceLocation) > 0:
		l.release.unsetValue(pathOf(wrong.InstanceLocation))
	}
	l.addRow(Row{Effect: Blocks, Object: object, Field: cmp.Or(strings.Join(wrong.InstanceLocation, "."), "values"), There: "set", Here: "refused: " + strings.ReplaceAll(text, "\n", " "),
		Do: do})
}

// pathOf writes the path of a value as --set expects it. For an element of a list it is the path of the list,
// since --set cannot remove an element.
func pathOf(location []string) string {
	escape := strings.NewReplacer(`\`, `\\`, ".", `\.`, ",", `\,`, "=", `\=`, "[", `\[`)
	var keys []string
	for _, key := range location {
		if _, err := strconv.Atoi(key); err == nil {
			break
		}
		keys = append(keys, escape.Replace(key))
	}
	return strings.Join(keys, ".")
}
