// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// line is a container in short: its name, image, restart policy, variables, mounts and devices.
func line(c *corev1.Container) string {
	out := []string{c.Name + "=" + c.Image}
	if c.RestartPolicy != nil {
		out = append(out, strings.ToLower(string(*c.RestartPolicy)))
	}
	for _, e := range c.Env {
		value := e.Value
		if e.ValueFrom != nil {
			value = e.ValueFrom.FieldRef.FieldPath
		}
		if e.Name != kruise.SidecarInjectedEnv {
			out = append(out, e.Name+":"+value)
		}
	}
	for _, m := range c.VolumeMounts {
		out = append(out, m.Name+"@"+m.MountPath+m.SubPathExpr)
	}
	for _, d := range c.VolumeDevices {
		out = append(out, d.Name+"%"+d.DevicePath)
	}
	return strings.Join(out, " ")
}

// short is a pod in short, without the marks that all pods get.
func short(pod *corev1.Pod) string {
	var out []string
	for i := range pod.Spec.InitContainers {
		out = append(out, "init "+line(&pod.Spec.InitContainers[i]))
	}
	for i := range pod.Spec.Containers {
		out = append(out, line(&pod.Spec.Containers[i]))
	}
	for _, v := range pod.Spec.Volumes {
		out = append(out, "volume "+v.Name)
	}
	for _, s := range pod.Spec.ImagePullSecrets {
		out = append(out, "secret "+s.Name)
	}
	var notes []string
	for key, value := range pod.Annotations {
		if !strings.HasPrefix(key, "kruise.io/sidecarset-hash") && key != kruise.SidecarSetInjectedListKey {
			notes = append(notes, "note "+key+" "+value)
		}
	}
	slices.Sort(notes)
	return strings.Join(append(out, notes...), "\n")
}

func TestPodsGetWhatTheirSidecarSetsSay(t *testing.T) {
	for name, tc := range map[string]struct {
		pod, set string
		other    string // the spec of a SidecarSet that comes next
		sorted   bool
		want     string
		fails    string
	}{
		"containers go in front in the order of the list, or behind": {
			set:  `{containers: [{name: b, image: b, podInjectPolicy: BeforeAppContainer}, {name: a, image: a, podInjectPolicy: BeforeAppContainer}, {name: c, image: c, podInjectPolicy: AfterAppContainer}]}`,
			want: "b=b\na=a\nmain=web\nc=c",
		},
		"containers are sorted by name with the gate": {
			set:    `{containers: [{name: b, image: b, podInjectPolicy: BeforeAppContainer}, {name: a, image: a, podInjectPolicy: BeforeAppContainer}]}`,
			sorted: true, want: "a=a\nb=b\nmain=web",
		},
		"init containers are sorted by name": {
			pod:  `{initContainers: [{name: own, image: own}]}`,
			set:  `{initContainers: [{name: b, image: b}, {name: a, image: a}, {name: z, image: z, podInjectPolicy: BeforeAppContainer}]}`,
			want: "init z=z\ninit own=own\ninit a=a\ninit b=b\nmain=web",
		},
		"a container of the same name is replaced where it is": {
			pod:  `{containers: [{name: agent, image: old}, {name: main, image: web}]}`,
			set:  `{containers: [{name: agent, image: new, podInjectPolicy: AfterAppContainer}]}`,
			want: "agent=new\nmain=web",
		},
		"a name of an init container is not one of a container": {
			pod:   `{initContainers: [{name: agent, image: old}]}`,
			set:   `{containers: [{name: agent, image: new}]}`,
			fails: `SidecarSet logs: spec.containers: the pod has a container "agent" in spec.initContainers, so it cannot have one in spec.containers`,
		},
		"only volumes that are mounted are added, and those of the pod stay": {
			pod:  `{volumes: [{name: mine, emptyDir: {}}]}`,
			set:  `{containers: [{name: a, image: a, volumeMounts: [{name: v, mountPath: /v}, {name: mine, mountPath: /m}]}], volumes: [{name: v, emptyDir: {}}, {name: unused, emptyDir: {}}, {name: mine, hostPath: {path: /}}]}`,
			want: "main=web\na=a v@/v mine@/m\nvolume mine\nvolume v",
		},
		"mounts are shared, but where the path is taken, with the variables that their paths need": {
			pod:  `{containers: [{name: main, image: web, env: [{name: ONE, value: "1"}, {name: TWO, value: "2"}], volumeMounts: [{name: d, mountPath: /d, subPathExpr: $(ONE)/$$(TWO)}, {name: d, mountPath: /taken}]}]}`,
			set:  `{containers: [{name: a, image: a, shareVolumePolicy: {type: enabled}, volumeMounts: [{name: v, mountPath: /taken}]}]}`,
			want: "main=web ONE:1 TWO:2 d@/d$(ONE)/$$(TWO) d@/taken\na=a ONE:1 v@/taken d@/d$(ONE)/$$(TWO)",
		},
		"mounts are not shared otherwise": {
			pod:  `{containers: [{name: main, image: web, volumeMounts: [{name: d, mountPath: /d}]}]}`,
			set:  `{containers: [{name: a, image: a, shareVolumePolicy: {type: disabled}}]}`,
			want: "main=web d@/d\na=a",
		},
		"mounts of containers that were injected are not shared": {
			pod:  `{containers: [{name: main, image: web}, {name: other, image: o, env: [{name: IS_INJECTED, value: "true"}], volumeMounts: [{name: d, mountPath: /d}]}]}`,
			set:  `{containers: [{name: a, image: a, shareVolumePolicy: {type: enabled}}]}`,
			want: "main=web\nother=o d@/d\na=a",
		},
		"devices are shared": {
			pod:  `{volumes: [{name: disk, persistentVolumeClaim: {claimName: c}}], containers: [{name: main, image: web, volumeDevices: [{name: disk, devicePath: /dev/x}]}]}`,
			set:  `{containers: [{name: a, image: a, shareVolumeDevicePolicy: {type: enabled}}]}`,
			want: "main=web disk%/dev/x\na=a disk%/dev/x\nvolume disk",
		},
		"variables are transferred from a container by its name, and own ones of the name stay": {
			pod:  `{containers: [{name: main, image: web, env: [{name: ONE, value: "1"}, {name: TWO, value: "2"}, {name: THREE, value: "3"}]}]}`,
			set:  `{containers: [{name: a, image: a, env: [{name: TWO, value: own}, {name: FOUR, value: own}], transferEnv: [{sourceContainerName: main, envNames: [TWO, MISSING], envName: ONE}, {sourceContainerName: missing, envName: THREE}]}]}`,
			want: "main=web ONE:1 TWO:2 THREE:3\na=a TWO:own FOUR:own ONE:1",
		},
		"own variables come first, then those that are transferred, then those that shared paths need": {
			pod:  `{containers: [{name: main, image: web, env: [{name: ONE, value: "1"}, {name: TWO, value: "2"}, {name: THREE, value: "3"}], volumeMounts: [{name: d, mountPath: /d, subPathExpr: $(ONE)/$(TWO)/$(THREE)}]}, {name: more, image: more, env: [{name: TWO, value: more}]}]}`,
			set:  `{containers: [{name: a, image: a, shareVolumePolicy: {type: enabled}, env: [{name: ONE, value: own}], transferEnv: [{sourceContainerName: more, envName: TWO}, {sourceContainerName: main, envName: TWO}]}]}`,
			want: "main=web ONE:1 TWO:2 THREE:3 d@/d$(ONE)/$(TWO)/$(THREE)\nmore=more TWO:more\na=a ONE:own TWO:more THREE:3 d@/d$(ONE)/$(TWO)/$(THREE)",
		},
		"variables are transferred from the container that a label or an annotation names": {
			pod:  `{containers: [{name: main, image: web, env: [{name: ONE, value: "1"}]}]}`,
			set:  `{containers: [{name: a, image: a, transferEnv: [{sourceContainerNameFrom: {fieldRef: {fieldPath: "metadata.labels['which']"}}, envName: ONE}]}, {name: b, image: b, transferEnv: [{sourceContainerNameFrom: {fieldRef: {fieldPath: "metadata.annotations['which']"}}, envName: ONE}]}, {name: c, image: c, transferEnv: [{sourceContainerNameFrom: {fieldRef: {fieldPath: metadata.name}}, envName: ONE}]}]}`,
			want: "main=web ONE:1\na=a ONE:1\nb=b ONE:1\nc=c",
		},
		"variables are transferred from an init container, but not to one": {
			pod:  `{initContainers: [{name: own, image: own, env: [{name: ONE, value: "1"}]}], containers: [{name: main, image: web, env: [{name: TWO, value: "2"}]}]}`,
			set:  `{initContainers: [{name: b, image: b, transferEnv: [{sourceContainerName: own, envName: ONE}, {sourceContainerName: main, envName: TWO}]}], containers: [{name: a, image: a, transferEnv: [{sourceContainerName: own, envName: ONE}]}]}`,
			want: "init own=own ONE:1\ninit b=b TWO:2\nmain=web TWO:2\na=a ONE:1",
		},
		"mounts and devices are shared with an init container, and those of init containers with none": {
			pod:  `{volumes: [{name: disk, persistentVolumeClaim: {claimName: c}}], initContainers: [{name: own, image: own, volumeMounts: [{name: d, mountPath: /own}]}], containers: [{name: main, image: web, env: [{name: ONE, value: "1"}], volumeMounts: [{name: d, mountPath: /d, subPathExpr: $(ONE)}], volumeDevices: [{name: disk, devicePath: /dev/x}]}]}`,
			set:  `{initContainers: [{name: a, image: a, shareVolumePolicy: {type: enabled}, shareVolumeDevicePolicy: {type: enabled}}, {name: b, image: b}]}`,
			want: "init own=own d@/own\ninit a=a ONE:1 d@/d$(ONE) disk%/dev/x\ninit b=b\nmain=web ONE:1 d@/d$(ONE) disk%/dev/x\nvolume disk",
		},
		"containers that are put in are no sources, of the same SidecarSet or of another": {
			set:   `{containers: [{name: a, image: a, env: [{name: ONE, value: "1"}], volumeMounts: [{name: v, mountPath: /v}]}, {name: b, image: b, shareVolumePolicy: {type: enabled}, transferEnv: [{sourceContainerName: a, envName: ONE}]}], volumes: [{name: v, emptyDir: {}}]}`,
			other: `{containers: [{name: c, image: c, shareVolumePolicy: {type: enabled}, transferEnv: [{sourceContainerName: a, envName: ONE}]}]}`,
			want:  "main=web\na=a ONE:1 v@/v\nb=b\nc=c\nvolume v",
		},
		"a container that is replaced is a source as it was": {
			pod:   `{containers: [{name: main, image: web}, {name: a, image: old, env: [{name: ONE, value: old}], volumeMounts: [{name: d, mountPath: /d}]}]}`,
			set:   `{containers: [{name: a, image: a, env: [{name: ONE, value: new}]}]}`,
			other: `{containers: [{name: b, image: b, shareVolumePolicy: {type: enabled}, transferEnv: [{sourceContainerName: a, envName: ONE}]}]}`,
			want:  "main=web\na=a ONE:new\nb=b ONE:old d@/d",
		},
		"pull secrets are joined by name": {
			pod:  `{imagePullSecrets: [{name: mine}]}`,
			set:  `{containers: [{name: a, image: a}], imagePullSecrets: [{name: mine}, {name: theirs}]}`,
			want: "main=web\na=a\nsecret mine\nsecret theirs",
		},
		"annotations are kept, overwritten or merged": {
			set:  `{containers: [{name: a, image: a}], patchPodMetadata: [{annotations: {which: x, new: x}, patchPolicy: Retain}, {annotations: {over: x}, patchPolicy: Overwrite}, {annotations: {json: '{"b":2,"a":null}', absent: '{"c":3}'}, patchPolicy: MergePatchJson}]}`,
			want: "main=web\na=a\nnote absent {\"c\":3}\nnote json {\"b\":2}\nnote new x\nnote over x\nnote which main",
		},
		"annotations of several are set one after the other": {
			set:   `{containers: [{name: a, image: a}], patchPodMetadata: [{annotations: {kept: logs, over: logs}, patchPolicy: Retain}, {annotations: {json: '{"b":2}'}, patchPolicy: MergePatchJson}]}`,
			other: `{containers: [{name: b, image: b}], patchPodMetadata: [{annotations: {kept: mesh}, patchPolicy: Retain}, {annotations: {over: mesh}, patchPolicy: Overwrite}, {annotations: {json: '{"b":3,"c":4}'}, patchPolicy: MergePatchJson}]}`,
			want:  "main=web\na=a\nb=b\nnote json {\"a\":1,\"b\":3,\"c\":4}\nnote kept logs\nnote over mesh\nnote which main",
		},
		"an annotation that is no JSON cannot be merged": {
			set:   `{containers: [{name: a, image: a}], patchPodMetadata: [{annotations: {which: '{}'}, patchPolicy: MergePatchJson}]}`,
			fails: "SidecarSet logs: spec.patchPodMetadata: [0].annotations[which]: merging it with that of the pod",
		},
		"a hot pair has two containers, of which one works": {
			set: `{containers: [{name: a, image: a, upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: empty}}]}`,
			want: "main=web\n" +
				"a-1=a SIDECARSET_VERSION:metadata.annotations['version.sidecarset.kruise.io/a-1'] SIDECARSET_VERSION_ALT:metadata.annotations['versionalt.sidecarset.kruise.io/a-1']\n" +
				"a-2=empty SIDECARSET_VERSION:metadata.annotations['version.sidecarset.kruise.io/a-2'] SIDECARSET_VERSION_ALT:metadata.annotations['versionalt.sidecarset.kruise.io/a-2']\n" +
				"note kruise.io/sidecarset-working-hotupgrade-container {\"a\":\"a-1\"}\n" +
				"note version.sidecarset.kruise.io/a-1 1\nnote version.sidecarset.kruise.io/a-2 0\n" +
				"note versionalt.sidecarset.kruise.io/a-1 0\nnote versionalt.sidecarset.kruise.io/a-2 1",
		},
		"a hot pair that is native has two init containers, which go on running, behind those of the pod": {
			pod: `{initContainers: [{name: own, image: own}]}`,
			set: `{initContainers: [{name: a, image: a, restartPolicy: Always, volumeMounts: [{name: v, mountPath: /v}], podInjectPolicy: AfterAppContainer, upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: empty}}], containers: [{name: b, image: b}], volumes: [{name: v, emptyDir: {}}]}`,
			want: "init own=own\n" +
				"init a-1=a always SIDECARSET_VERSION:metadata.annotations['version.sidecarset.kruise.io/a-1'] SIDECARSET_VERSION_ALT:metadata.annotations['versionalt.sidecarset.kruise.io/a-1'] v@/v\n" +
				"init a-2=empty always SIDECARSET_VERSION:metadata.annotations['version.sidecarset.kruise.io/a-2'] SIDECARSET_VERSION_ALT:metadata.annotations['versionalt.sidecarset.kruise.io/a-2'] v@/v\n" +
				"main=web\nb=b\nvolume v\n" +
				"note kruise.io/sidecarset-working-hotupgrade-container {\"a\":\"a-1\"}\n" +
				"note version.sidecarset.kruise.io/a-1 1\nnote version.sidecarset.kruise.io/a-2 0\n" +
				"note versionalt.sidecarset.kruise.io/a-1 0\nnote versionalt.sidecarset.kruise.io/a-2 1",
		},
		"native and plain hot pairs each have a container that works": {
			set: `{initContainers: [{name: a, image: a, restartPolicy: Always, podInjectPolicy: BeforeAppContainer, upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: empty}}], containers: [{name: b, image: b, podInjectPolicy: BeforeAppContainer, upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: none}}]}`,
			want: "init a-1=a always SIDECARSET_VERSION:metadata.annotations['version.sidecarset.kruise.io/a-1'] SIDECARSET_VERSION_ALT:metadata.annotations['versionalt.sidecarset.kruise.io/a-1']\n" +
				"init a-2=empty always SIDECARSET_VERSION:metadata.annotations['version.sidecarset.kruise.io/a-2'] SIDECARSET_VERSION_ALT:metadata.annotations['versionalt.sidecarset.kruise.io/a-2']\n" +
				"b-1=b SIDECARSET_VERSION:metadata.annotations['version.sidecarset.kruise.io/b-1'] SIDECARSET_VERSION_ALT:metadata.annotations['versionalt.sidecarset.kruise.io/b-1']\n" +
				"b-2=none SIDECARSET_VERSION:metadata.annotations['version.sidecarset.kruise.io/b-2'] SIDECARSET_VERSION_ALT:metadata.annotations['versionalt.sidecarset.kruise.io/b-2']\n" +
				"main=web\n" +
				"note kruise.io/sidecarset-working-hotupgrade-container {\"a\":\"a-1\",\"b\":\"b-1\"}\n" +
				"note version.sidecarset.kruise.io/a-1 1\nnote version.sidecarset.kruise.io/a-2 0\n" +
				"note version.sidecarset.kruise.io/b-1 1\nnote version.sidecarset.kruise.io/b-2 0\n" +
				"note versionalt.sidecarset.kruise.io/a-1 0\nnote versionalt.sidecarset.kruise.io/a-2 1\n" +
				"note versionalt.sidecarset.kruise.io/b-1 0\nnote versionalt.sidecarset.kruise.io/b-2 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{}
			pod.Labels = map[string]string{"which": "main"}
			pod.Annotations = map[string]string{"which": "main", "over": "own", "json": `{"a":1}`}
			if tc.pod == "" || !strings.Contains(tc.pod, " containers") && !strings.HasPrefix(tc.pod, "{containers") {
				pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "web"}}
			}
			spec := &kruise.SidecarSetSpec{}
			if err := yaml.UnmarshalStrict([]byte(tc.pod), &pod.Spec); tc.pod != "" && err != nil {
				t.Fatal(err)
			}
			if err := yaml.UnmarshalStrict([]byte(tc.set), spec); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(tc.set, "patchPodMetadata") {
				pod.Annotations = map[string]string{"which": "main"}
				tc.want += "\nnote which main"
			}
			sets, marked := []Set{{Name: "logs", Spec: spec}}, "logs"
			if tc.other != "" {
				next := &kruise.SidecarSetSpec{}
				if err := yaml.UnmarshalStrict([]byte(tc.other), next); err != nil {
					t.Fatal(err)
				}
				sets, marked = append(sets, Set{Name: "mesh", Spec: next}), "logs,mesh"
			}
			err := ApplySets(pod, sets, Options{Now: time.Unix(1_700_000_000, 0), SortByName: tc.sorted})
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("%v, want %s", err, tc.fails)
				}
				return
			}
			got, want := sortedNotes(short(pod)), sortedNotes(tc.want)
			if err != nil || got != want {
				t.Errorf("%v, the pod has\n%s\nwant\n%s", err, got, want)
			}
			if got := pod.Annotations[kruise.SidecarSetInjectedListKey]; got != marked {
				t.Errorf("the pod is marked with %q, want %q", got, marked)
			}
		})
	}
}

// sortedNotes puts the annotations into the order of their keys.
func sortedNotes(text string) string {
	lines := strings.Split(text, "\n")
	at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "note ") })
	if at >= 0 {
		slices.Sort(lines[at:])
	}
	return strings.Join(lines, "\n")
}
