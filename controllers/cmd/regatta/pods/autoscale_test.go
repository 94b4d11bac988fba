// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regatta-sh/regatta/test/terminal"
)

// scaled is an object that says how many pods it has.
func scaled(t *testing.T, text string) string {
	t.Helper()
	return change(t, text, "spec: {replicas: 2}")
}

func TestAutoscaleEachKind(t *testing.T) {
	const autoscaler = "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {namespace: default, name: web}}"
	s := newShop(t)
	for word, target := range map[string]string{
		"clone": "apiVersion: apps.kruise.io/v1beta1\nkind: CloneSet\nname: web\n", "asts": "apiVersion: apps.kruise.io/v1beta1\nkind: StatefulSet\nname: web\n",
		"ud": "apiVersion: apps.kruise.io/v1beta1\nkind: UnitedDeployment\nname: web\n", "deployment": "apiVersion: apps/v1\nkind: Deployment\nname: web\n",
		"statefulset": "apiVersion: apps/v1\nkind: StatefulSet\nname: web\n",
	} {
		t.Run(word, func(t *testing.T) {
			s.CreateObjects(t, scaled(t, workloads("web")[word]))
			s.wants(t, NewAutoscaleCommand(), word+"/web --max 5 --dry-run=server", typed{Out: "horizontalpodautoscaler.autoscaling/web autoscaled (server dry run)\n"})
			s.wants(t, NewAutoscaleCommand(), word+" web --max 5 --field-manager me", typed{Out: "horizontalpodautoscaler.autoscaling/web autoscaled\n"})
			s.deleteLater(t, autoscaler)
			if diff := cmp.Diff(target, s.ReadField(t, autoscaler, "spec.scaleTargetRef")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if manager := s.ReadObject(t, autoscaler).GetManagedFields()[0].Manager; manager != "me" {
				t.Errorf("the fields belong to %s", manager)
			}
			s.wants(t, NewAutoscaleCommand(), word+"/web --max 5", typed{Err: "HorizontalPodAutoscaler web exists already in namespace default", Code: 3})
		})
	}
}

func TestAutoscaleManifests(t *testing.T) {
	s := newShop(t)
	s.CreateObjects(t, scaled(t, cloneSet("web")))
	const cpuPercent = "Flag --cpu-percent has been deprecated, use --cpu, such as --cpu 80%\n"
	for name, tc := range map[string]struct{ line, want, warning string }{
		"without targets":       {"clone/web --max 5 --min 0", `spec: {maxReplicas: 5`, ""},
		"percentages":           {"clone/web --max 5 --min 2 --cpu 80% --memory 60% --name by-load", `spec: {minReplicas: 2, maxReplicas: 5, metrics: [CPU {type: Utilization, averageUtilization: 80}}}, MEMORY {type: Utilization, averageUtilization: 60}}}]`, ""},
		"quantities":            {"clone/web --max 5 --cpu 0.5k --memory 1.5Gi", `spec: {maxReplicas: 5, metrics: [CPU {type: AverageValue, averageValue: "500"}}}, MEMORY {type: AverageValue, averageValue: 1536Mi}}}]`, ""},
		"whole numbers":         {"clone/web --max 5 --cpu 500 --memory 200", `spec: {maxReplicas: 5, metrics: [CPU {type: AverageValue, averageValue: 500m}}}, MEMORY {type: AverageValue, averageValue: 200Mi}}}]`, ""},
		"more than is asked":    {"clone/web --max 5 --cpu 150%", `spec: {maxReplicas: 5, metrics: [CPU {type: Utilization, averageUtilization: 150}}}]`, ""},
		"the flag that was":     {"clone/web --max 5 --cpu-percent 70", `spec: {maxReplicas: 5, metrics: [CPU {type: Utilization, averageUtilization: 70}}}]`, cpuPercent},
		"the flag that was, -1": {"clone/web --max 5 --cpu-percent -1 --cpu 1", `spec: {maxReplicas: 5, metrics: [CPU {type: AverageValue, averageValue: 1m}}}]`, cpuPercent},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.types(t, NewAutoscaleCommand(), tc.line+" --dry-run=client -o yaml")
			manifest, warned := strings.CutPrefix(got.Out, tc.warning)
			if !warned || got.Err != "" || got.Code != 0 {
				t.Fatalf("it ended with %d: %s%s", got.Code, got.Out, got.Err)
			}
			called := "web"
			if strings.Contains(tc.line, "--name") {
				called = "by-load"
			}
			text := strings.NewReplacer("CPU", "{type: Resource, resource: {name: cpu, target:", "MEMORY", "{type: Resource, resource: {name: memory, target:").Replace(tc.want)
			want := terminal.ParseObject(t, "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: "+called+"}\n"+text+
				", scaleTargetRef: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: web}}")
			if diff := cmp.Diff(want.Object, terminal.ParseObject(t, manifest).Object); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			s.wants(t, NewAutoscaleCommand(), tc.line+" --dry-run=server -o name", typed{Out: tc.warning + "horizontalpodautoscaler.autoscaling/" + called + "\n"})
		})
	}
}

func TestAutoscaleRefusals(t *testing.T) {
	s := newShop(t)
	s.CreateObjects(t, scaled(t, cloneSet("web")), united("parts"), scaled(t, change(t, cloneSet("part"),
		"metadata: {ownerReferences: [{apiVersion: apps.kruise.io/v1beta1, kind: UnitedDeployment, name: parts, uid: u, controller: true}]}")))
	kinds := "clone/NAME, asts/NAME, ud/NAME, deployment/NAME or statefulset/NAME"
	const target = "want a percentage, such as 80%, or a quantity above 0, such as 500"
	for line, want := range map[string]typed{
		"clone/web":                         {Err: `required flag(s) "max" not set`, Code: 2},
		"--max 5":                           {Err: "name an object; want " + kinds, Code: 2},
		"ads/web --max 5":                   {Err: "this command is not for objects of kind Advanced DaemonSet; want " + kinds, Code: 2},
		"clone/web --max 0":                 {Err: "--max is 0; want 1 or more", Code: 2},
		"clone/web --max 3 --min 4":         {Err: "--max is 3 and --min is 4; want a --max that is not less", Code: 2},
		"clone/web --max many":              {Err: `--max is "many": it must be a int32`, Code: 2},
		"clone/web --max 5 --cpu 0%":        {Err: `--cpu is "0%"; want a whole percentage, 1% or more`, Code: 2},
		"clone/web --max 5 --cpu 50.5%":     {Err: `--cpu is "50.5%"; want a whole percentage, 1% or more`, Code: 2},
		"clone/web --max 5 --cpu 0.5":       {Err: `--cpu is "0.5"; write a number that is not whole with a unit, such as 500m`, Code: 2},
		"clone/web --max 5 --cpu -1":        {Err: `--cpu is "-1"; ` + target + "m", Code: 2},
		"clone/web --max 5 --memory big":    {Err: `--memory is "big"; ` + target + "Mi", Code: 2},
		"clone/web --max 5 --name a_b":      {Err: `--name is "a_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`, Code: 2},
		"clone/web --max 5 --what":          {Err: "unknown flag: --what; regatta autoscale --help lists them", Code: 2},
		"clone/none --max 5":                {Err: "there is no CloneSet none in namespace default", Code: 3},
		"clone/part --max 5":                {Err: "CloneSet part is of UnitedDeployment parts, which would undo the change; change the UnitedDeployment instead", Code: 1},
		"ud/parts --max 5":                  {Err: "spec.replicas of UnitedDeployment parts is not set, and without it an autoscaler reads no scale; set it first, such as by regatta scale", Code: 1},
		"clone/web --max 5 --cpu 1 -n none": {Err: "there is no CloneSet web in namespace none", Code: 3},
	} {
		t.Run(line, func(t *testing.T) { s.wants(t, NewAutoscaleCommand(), line, want) })
	}
	t.Run("two flags for the CPU", func(t *testing.T) {
		got := s.types(t, NewAutoscaleCommand(), "clone/web --max 5 --cpu 1 --cpu-percent 1")
		if got.Code != 2 || !strings.HasSuffix(got.Err, "--cpu and --cpu-percent exclude each other") {
			t.Errorf("got %+v", got)
		}
	})
}
