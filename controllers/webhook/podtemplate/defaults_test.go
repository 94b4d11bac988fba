// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"pgregory.net/rapid"

	_ "github.com/regatta-sh/regatta/test/proptest"
)

func parse[T any](t testing.TB, text string) *T {
	t.Helper()
	out := new(T)
	if err := yaml.Unmarshal([]byte(text), out); err != nil {
		t.Fatalf("reading %s: %v", text, err)
	}
	return out
}

const bareDefaults = "dnsPolicy: ClusterFirst, restartPolicy: Always, schedulerName: default-scheduler, terminationGracePeriodSeconds: 30, securityContext: {}"

func TestDefaults(t *testing.T) {
	for _, tc := range []struct {
		name     string
		defaults Settings
		in, want string
	}{
		{name: "an empty pod gets what every pod has", in: `{}`, want: `{` + bareDefaults + `}`},
		{
			name: "what is set stays",
			in:   `{dnsPolicy: None, restartPolicy: Never, schedulerName: x, terminationGracePeriodSeconds: 0, securityContext: {runAsUser: 1}}`,
			want: `{dnsPolicy: None, restartPolicy: Never, schedulerName: x, terminationGracePeriodSeconds: 0, securityContext: {runAsUser: 1}}`,
		},
		{
			name: "a container gets its messages and its pull policy",
			in:   `{containers: [{name: a, image: "x:1"}], initContainers: [{name: b, image: "r.io:5000/x", imagePullPolicy: Never}]}`,
			want: `{` + bareDefaults + `, containers: [{name: a, image: "x:1", imagePullPolicy: IfNotPresent, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File}],
			  initContainers: [{name: b, image: "r.io:5000/x", imagePullPolicy: Never, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File}]}`,
		},
		{
			name: "ports are TCP, and stay off the host",
			in:   `{hostNetwork: true, containers: [` + done + `, ports: [{containerPort: 80}, {containerPort: 53, protocol: UDP}]}]}`,
			want: `{hostNetwork: true, ` + bareDefaults + `, containers: [` + done + `, ports: [{containerPort: 80, protocol: TCP}, {containerPort: 53, protocol: UDP}]}]}`,
		},
		{
			name:     "ports are the host's too if the gate is on",
			defaults: Settings{HostNetworkHostPorts: true},
			in:       `{hostNetwork: true, containers: [` + done + `, ports: [{containerPort: 80}]}]}`,
			want:     `{hostNetwork: true, ` + bareDefaults + `, containers: [` + done + `, ports: [{containerPort: 80, hostPort: 80, protocol: TCP}]}]}`,
		},
		{
			name: "references to fields are of version v1",
			in:   `{containers: [` + done + `, env: [{name: a, valueFrom: {fieldRef: {fieldPath: x}}}, {name: b, valueFrom: {fileKeyRef: {key: k}}}, {name: c, value: v}]}]}`,
			want: `{` + bareDefaults + `, containers: [` + done + `, env: [{name: a, valueFrom: {fieldRef: {fieldPath: x, apiVersion: v1}}}, {name: b, valueFrom: {fileKeyRef: {key: k, optional: false}}}, {name: c, value: v}]}]}`,
		},
		{
			name: "probes get their times, HTTP its path and scheme, GRPC its service",
			in: `{containers: [` + done + `, livenessProbe: {httpGet: {port: 80}}, readinessProbe: {grpc: {port: 1}, periodSeconds: 3}, startupProbe: {exec: {}},
			  lifecycle: {preStop: {httpGet: {port: x, path: /x}}, postStart: {exec: {}}}}]}`,
			want: `{` + bareDefaults + `, containers: [` + done + `,
			  livenessProbe: {httpGet: {port: 80, path: /, scheme: HTTP}, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3},
			  readinessProbe: {grpc: {port: 1, service: ""}, timeoutSeconds: 1, periodSeconds: 3, successThreshold: 1, failureThreshold: 3},
			  startupProbe: {exec: {}, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3},
			  lifecycle: {preStop: {httpGet: {port: x, path: /x, scheme: HTTP}}, postStart: {exec: {}}}}]}`,
		},
		{
			name: "quantities are rounded up to thousandths, and requests are left to pods",
			in:   `{containers: [` + done + `, resources: {limits: {cpu: 1.0001, memory: 1Gi}}}], overhead: {cpu: 100u}}`,
			want: `{` + bareDefaults + `, containers: [` + done + `, resources: {limits: {cpu: 1001m, memory: 1Gi}}}], overhead: {cpu: 1m}}`,
		},
		{
			name: "volumes get modes, types and a source",
			in: `{volumes: [{name: a}, {name: b, hostPath: {path: /x}}, {name: c, secret: {}}, {name: d, configMap: {defaultMode: 1}}, {name: e, downwardAPI: {items: [{path: x, fieldRef: {fieldPath: z}}]}},
			  {name: f, projected: {sources: [{serviceAccountToken: {path: x}}, {downwardAPI: {items: [{path: x, fieldRef: {fieldPath: z}}]}}]}},
			  {name: g, ephemeral: {volumeClaimTemplate: {spec: {}}}}, {name: h, image: {reference: "x:latest"}}]}`,
			want: `{` + bareDefaults + `, volumes: [{name: a, emptyDir: {}}, {name: b, hostPath: {path: /x, type: ""}}, {name: c, secret: {defaultMode: 420}}, {name: d, configMap: {defaultMode: 1}},
			  {name: e, downwardAPI: {defaultMode: 420, items: [{path: x, fieldRef: {fieldPath: z, apiVersion: v1}}]}},
			  {name: f, projected: {defaultMode: 420, sources: [{serviceAccountToken: {path: x, expirationSeconds: 3600}}, {downwardAPI: {items: [{path: x, fieldRef: {fieldPath: z, apiVersion: v1}}]}}]}},
			  {name: g, ephemeral: {volumeClaimTemplate: {spec: {volumeMode: Filesystem}}}}, {name: h, image: {reference: "x:latest", pullPolicy: Always}}]}`,
		},
		{
			name: "volumes that name a device get its usual settings",
			in: `{volumes: [{name: a, iscsi: {iqn: x, targetPortal: z, lun: 0}}, {name: b, rbd: {monitors: [x], image: z}}, {name: c, azureDisk: {diskName: x, diskURI: z}},
			  {name: d, scaleIO: {gateway: x, system: z}}]}`,
			want: `{` + bareDefaults + `, volumes: [{name: a, iscsi: {iqn: x, targetPortal: z, lun: 0, iscsiInterface: default}},
			  {name: b, rbd: {monitors: [x], image: z, pool: rbd, user: admin, keyring: /etc/ceph/keyring}},
			  {name: c, azureDisk: {diskName: x, diskURI: z, cachingMode: ReadWrite, fsType: ext4, readOnly: false, kind: Shared}},
			  {name: d, scaleIO: {gateway: x, system: z, storageMode: ThinProvisioned, fsType: xfs}}]}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := &corev1.PodTemplateSpec{Spec: *parse[corev1.PodSpec](t, tc.in)}
			tc.defaults.ApplyDefaults(got)
			want := &corev1.PodTemplateSpec{Spec: *parse[corev1.PodSpec](t, tc.want)}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// done is a container that wants no defaults, to be continued.
const done = `{name: a, image: x, imagePullPolicy: Never, terminationMessagePath: x, terminationMessagePolicy: File`

func TestClaimDefaults(t *testing.T) {
	claim := parse[corev1.PersistentVolumeClaim](t, `{spec: {resources: {requests: {storage: 1m}, limits: {storage: 1u}}}}`)
	Settings{}.ApplyToClaim(claim)
	want := parse[corev1.PersistentVolumeClaim](t, `{spec: {volumeMode: Filesystem, resources: {requests: {storage: 1m}, limits: {storage: 1m}}}, status: {phase: Pending}}`)
	if diff := cmp.Diff(want, claim); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPullPolicy(t *testing.T) {
	const always, ifNotPresent = corev1.PullAlways, corev1.PullIfNotPresent
	for image, want := range map[string]corev1.PullPolicy{
		"nginx": always, "nginx:latest": always, "nginx:1": ifNotPresent, "r.io:5000/nginx": always, "r.io:5000/nginx:1": ifNotPresent,
		"nginx@sha256:00": ifNotPresent, "nginx:latest@sha256:00": always, "": ifNotPresent,
	} {
		if got := pullPolicy(image); got != want {
			t.Errorf("%q is pulled %s, want %s", image, got, want)
		}
	}
}

func TestDefaultsOfDefaultsChangeNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		once := drawTemplate(rt)
		defaults := Settings{HostNetworkHostPorts: rapid.Bool().Draw(rt, "host ports")}
		defaults.ApplyDefaults(once)
		again := once.DeepCopy()
		defaults.ApplyDefaults(again)
		if diff := cmp.Diff(once, again); diff != "" {
			rt.Fatalf("(-once +again):\n%s", diff)
		}
	})
}
