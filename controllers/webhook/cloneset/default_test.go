// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
	_ "github.com/regatta-sh/regatta/test/proptest"
)

const templateDefaults = `{spec: {dnsPolicy: ClusterFirst, restartPolicy: Always, schedulerName: default-scheduler, terminationGracePeriodSeconds: 30, securityContext: {},
  containers: [{name: main, image: "nginx:1", imagePullPolicy: IfNotPresent, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File}]}}`

func TestDefaults(t *testing.T) {
	all := `{spec: {replicas: 1, revisionHistoryLimit: 10, template: ` + templateDefaults + `}, ROLLING: {POLICY: ReCreate, partition: 0, maxUnavailable: 20%, maxSurge: 0}}`
	for _, tc := range []struct {
		name      string
		only      string
		defaulter Defaulter
		change    string
		want      string
	}{
		{name: "what is left out is filled in", change: `{}`, want: all},
		{name: "what is said stays", change: `{spec: {replicas: 0, revisionHistoryLimit: 0}, ROLLING: {POLICY: InPlaceOnly, partition: 5%, maxUnavailable: 3, maxSurge: 1%}}`,
			want: `{spec: {replicas: 0, revisionHistoryLimit: 0, template: ` + templateDefaults + `}, ROLLING: {POLICY: InPlaceOnly, partition: 5%, maxUnavailable: 3, maxSurge: 1%}}`},
		{name: "what this release does not know stays", change: `{spec: {template: {spec: {newer: {a: [1]}}}}}`, want: `{spec: {replicas: 1, revisionHistoryLimit: 10, template: {spec: {newer: {a: [1]}, ` + templateDefaults[len(`{spec: {`):] + `}, ROLLING: {POLICY: ReCreate, partition: 0, maxUnavailable: 20%, maxSurge: 0}}`},
		{name: "OnDelete has no rolling update", only: beta, change: `{spec: {updateStrategy: {type: OnDelete}}}`, want: `{spec: {updateStrategy: {type: OnDelete}, replicas: 1, revisionHistoryLimit: 10, template: ` + templateDefaults + `}}`},
		{name: "OnDelete has no amounts", only: alpha, change: `{spec: {updateStrategy: {type: OnDelete}}}`, want: `{spec: {updateStrategy: {type: OnDelete}, replicas: 1, revisionHistoryLimit: 10, template: ` + templateDefaults + `}}`},
		{name: "templates may be kept as they are", defaulter: Defaulter{KeepTemplates: true}, change: `{spec: {volumeClaimTemplates: [{metadata: {name: a}}]}}`, want: `{spec: {replicas: 1, revisionHistoryLimit: 10, volumeClaimTemplates: [{metadata: {name: a}}]}, ROLLING: {POLICY: ReCreate, partition: 0, maxUnavailable: 20%, maxSurge: 0}}`},
		{name: "claims get their defaults", change: `{spec: {volumeClaimTemplates: [{metadata: {name: a}, spec: {resources: {requests: {storage: 1Gi}}}}]}}`,
			want: all[:len(`{spec: {`)] + `volumeClaimTemplates: [{metadata: {name: a}, spec: {volumeMode: Filesystem, resources: {requests: {storage: 1Gi}}}, status: {phase: Pending}}], ` + all[len(`{spec: {`):]},
		{name: "ports go to the host if the gate is on", defaulter: Defaulter{Templates: podtemplate.Settings{HostNetworkHostPorts: true}, KeepTemplates: false}, change: `{spec: {template: {spec: {hostNetwork: true}}}}`,
			want: all[:len(`{spec: {replicas: 1, revisionHistoryLimit: 10, template: {spec: {`)] + `hostNetwork: true, ` + all[len(`{spec: {replicas: 1, revisionHistoryLimit: 10, template: {spec: {`):]},
	} {
		for _, version := range versions() {
			if tc.only != "" && tc.only != version {
				continue
			}
			t.Run(tc.name+" in "+version, func(t *testing.T) {
				want := tc.want
				if version == beta && tc.only == "" {
					want = withType(want)
				}
				got := defaulted(t, &tc.defaulter, version, typed(t, version, tc.change), nil)
				if diff := cmp.Diff(value(t, typed(t, version, tc.change, want)), value(t, got)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

// withType adds what only v1beta1 has to say.
func withType(want string) string {
	return want[:len(want)-1] + `, TYPE: RollingUpdate}`
}

func value(t testing.TB, raw []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTemplatesThatStayGetNoNewDefaults(t *testing.T) {
	for _, version := range versions() {
		keep, fill := &Defaulter{KeepTemplates: true}, &Defaulter{}
		claims := `{spec: {volumeClaimTemplates: [{metadata: {name: a}}]}}`
		old := defaulted(t, keep, version, typed(t, version, claims), nil)
		scaled := defaulted(t, fill, version, typed(t, version, claims, `{spec: {replicas: 3}}`), old)
		want := defaulted(t, keep, version, typed(t, version, claims, `{spec: {replicas: 3}}`), nil)
		if diff := cmp.Diff(value(t, want), value(t, scaled)); diff != "" {
			t.Errorf("in %s (-want +got):\n%s", version, diff)
		}
	}
}

func TestDefaultsOfDefaultsChangeNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		version := rapid.SampledFrom(versions()).Draw(rt, "version")
		pick := func(label string, texts ...string) string { return rapid.SampledFrom(texts).Draw(rt, label) }
		object := typed(t, version,
			`{ROLLING: {`+pick("policy", ``, `POLICY: InPlaceOnly, `)+pick("partition", ``, `partition: 5%, `)+pick("surge", ``, `maxSurge: 1, `)+pick("unavailable", ``, `maxUnavailable: 1`)+`}}`,
			`{spec: {`+pick("replicas", ``, `replicas: 0, `)+pick("history", ``, `revisionHistoryLimit: 0, `)+pick("claims", ``, `volumeClaimTemplates: [{metadata: {name: a}}], `)+
				`template: {spec: {`+pick("volumes", ``, `volumes: [{name: a}, {name: b, configMap: {}}], `)+pick("restart", ``, `restartPolicy: Never, `)+
				`containers: [{name: main, `+pick("image", `image: x`, `image: "x:1"`)+pick("probe", ``, `, livenessProbe: {httpGet: {port: 1}}`)+pick("cpu", ``, `, resources: {limits: {cpu: 1u}}`)+`}]}}}}`)
		once := defaulted(t, &Defaulter{}, version, object, nil)
		if again := defaulted(t, &Defaulter{}, version, once, nil); string(again) != string(once) {
			rt.Fatalf("%s became %s", once, again)
		}
		if updated := defaulted(t, &Defaulter{}, version, object, once); !cmp.Equal(value(t, updated), value(t, once)) {
			rt.Fatalf("applying %s again to %s gave %s", object, once, updated)
		}
	})
}
