// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestValidate(t *testing.T) {
	const dnsLabel = `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`
	one := func(more string) string { return `{containers: [{name: a, image: x, ` + more + `}]}` }
	pod := func(more string) string { return `{containers: [{name: a, image: x}], ` + more + `}` }
	claim := []string{"data"}
	for _, tc := range []struct {
		name   string
		spec   string
		labels map[string]string
		claims []string
		want   []string
	}{
		{name: "a container with a name and an image will do", spec: one("")},
		{name: "no container is none too few", spec: `{}`, want: []string{`spec.containers: Required value`}},
		{name: "a label has a value of its kind", spec: one(""), labels: map[string]string{"a": "-"}, want: []string{`metadata.labels: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`}},
		{name: "a container has a name and an image", spec: `{containers: [{}]}`, want: []string{`spec.containers[0].name: Required value`, `spec.containers[0].image: Required value`}},
		{name: "a name is a DNS label", spec: `{containers: [{name: A, image: x}]}`, want: []string{`spec.containers[0].name: Invalid value: "A": ` + dnsLabel}},
		{name: "two containers do not share a name", spec: `{containers: [{name: a, image: x}, {name: a, image: x}]}`, want: []string{`spec.containers[1].name: Duplicate value: "a"`}},
		{name: "nor does an init container share one", spec: `{containers: [{name: a, image: x}], initContainers: [{name: a, image: x}]}`, want: []string{`spec.initContainers[0].name: Duplicate value: "a"`}},
		{name: "a pull policy is one of three", spec: one("imagePullPolicy: x"), want: []string{`spec.containers[0].imagePullPolicy: Unsupported value: "x": supported values: "Always", "IfNotPresent", "Never"`}},
		{name: "a message policy is one of two", spec: one("terminationMessagePolicy: x"), want: []string{`spec.containers[0].terminationMessagePolicy: Unsupported value: "x": supported values: "FallbackToLogsOnError", "File"`}},
		{name: "a port has a number, a protocol and a name of its kind", spec: one(`ports: [{containerPort: 0, protocol: x, name: UP}]`), want: []string{
			`spec.containers[0].ports[0].name: Invalid value: "UP": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)`,
			`spec.containers[0].ports[0].name: Invalid value: "UP": must contain at least one letter (a-z)`,
			`spec.containers[0].ports[0].containerPort: Required value`,
			`spec.containers[0].ports[0].protocol: Unsupported value: "x": supported values: "SCTP", "TCP", "UDP"`}},
		{name: "a port is below 65536", spec: one(`ports: [{containerPort: 65536, hostPort: -1}]`), want: []string{
			`spec.containers[0].ports[0].containerPort: Invalid value: 65536: must be between 1 and 65535, inclusive`,
			`spec.containers[0].ports[0].hostPort: Invalid value: -1: must be between 1 and 65535, inclusive`}},
		{name: "ports of a container do not share a name", spec: one(`ports: [{containerPort: 1, name: a}, {containerPort: 2, name: a}]`), want: []string{`spec.containers[0].ports[1].name: Duplicate value: "a"`}},
		{name: "containers do not share a host port", spec: `{containers: [{name: a, image: x, ports: [{containerPort: 1, hostPort: 1}]}, {name: b, image: x, ports: [{containerPort: 2, hostPort: 1}]}]}`, want: []string{`spec.containers[1].ports[0].hostPort: Duplicate value: "TCP//1"`}},
		{name: "init containers run one by one and may", spec: `{containers: [{name: a, image: x, ports: [{containerPort: 1, hostPort: 1}]}], initContainers: [{name: b, image: x, ports: [{containerPort: 2, hostPort: 1}]}]}`},
		{name: "on the host's network both ports are the same", spec: `{hostNetwork: true, containers: [{name: a, image: x, ports: [{containerPort: 1, hostPort: 2}]}]}`, want: []string{"spec.containers[0].ports[0].hostPort: Invalid value: 2: must match `containerPort` when `hostNetwork` is true"}},
		{name: "an env has a name without =", spec: one(`env: [{name: ""}, {name: "a=b"}]`), want: []string{
			`spec.containers[0].env[0].name: Required value`,
			`spec.containers[0].env[1].name: Invalid value: "a=b": a valid environment variable name must consist only of printable ASCII characters other than '='`}},
		{name: "an env has one source at most", spec: one(`env: [{name: a, valueFrom: {}}, {name: b, value: x, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: c, valueFrom: {fieldRef: {fieldPath: metadata.name}, secretKeyRef: {key: x}}}]`), want: []string{
			"spec.containers[0].env[0].valueFrom: Invalid value: \"\": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
			"spec.containers[0].env[1].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty",
			`spec.containers[0].env[2].valueFrom: Invalid value: "": may not have more than one field specified at a time`}},
		{name: "an envFrom has one source", spec: one(`envFrom: [{}, {configMapRef: {name: a}}, {configMapRef: {name: a}, secretRef: {name: b}}]`), want: []string{
			"spec.containers[0].envFrom[0]: Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`",
			`spec.containers[0].envFrom[2]: Invalid value: "": may not have more than one field specified at a time`}},
		{name: "a mount names a volume or a claim", spec: one(`volumeMounts: [{name: data, mountPath: /a}, {name: gone, mountPath: /b}, {mountPath: /c}]`), claims: claim, want: []string{
			`spec.containers[0].volumeMounts[1].name: Not found: "gone"`, `spec.containers[0].volumeMounts[2].name: Required value`}},
		{name: "mounts do not share a path", spec: one(`volumeMounts: [{name: data, mountPath: /a}, {name: data, mountPath: /a}, {name: data}]`), claims: claim, want: []string{
			`spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/a": must be unique`, `spec.containers[0].volumeMounts[2].mountPath: Required value`}},
		{name: "a sub path goes down", spec: one(`volumeMounts: [{name: data, mountPath: /a, subPath: /x}, {name: data, mountPath: /b, subPath: ../x}, {name: data, mountPath: /c, subPath: x, subPathExpr: z}]`), claims: claim, want: []string{
			`spec.containers[0].volumeMounts[0].subPath: Invalid value: "/x": must be a relative path`,
			`spec.containers[0].volumeMounts[1].subPath: Invalid value: "../x": must not contain '..'`,
			`spec.containers[0].volumeMounts[2].subPathExpr: Invalid value: "z": subPathExpr and subPath are mutually exclusive`}},
		{name: "a device is a claim", spec: `{volumes: [{name: v}], containers: [{name: a, image: x, volumeDevices: [{name: data, devicePath: /a}, {name: v, devicePath: /b}, {name: gone, devicePath: /c}, {}]}]}`, claims: claim, want: []string{
			`spec.containers[0].volumeDevices[1].name: Invalid value: "v": must be a claim or an ephemeral volume`,
			`spec.containers[0].volumeDevices[2].name: Not found: "gone"`,
			`spec.containers[0].volumeDevices[3].name: Required value`, `spec.containers[0].volumeDevices[3].devicePath: Required value`}},
		{name: "volumes do not share a name", spec: pod(`volumes: [{name: v}, {name: v}, {}]`), want: []string{`spec.volumes[1].name: Duplicate value: "v"`, `spec.volumes[2].name: Required value`}},
		{name: "a volume has one source", spec: pod(`volumes: [{name: v, emptyDir: {}, secret: {secretName: s}}]`), want: []string{`spec.volumes[0].secret: Forbidden: may not specify more than 1 volume type`}},
		{name: "a source names what it is of", spec: pod(`volumes: [{name: a, persistentVolumeClaim: {claimName: ""}}, {name: b, secret: {}}, {name: c, configMap: {}}, {name: d, hostPath: {path: ""}}, {name: e, hostPath: {path: /a/../b}}]`), want: []string{
			`spec.volumes[0].persistentVolumeClaim.claimName: Required value`, `spec.volumes[1].secret.secretName: Required value`,
			`spec.volumes[2].configMap.name: Required value`, `spec.volumes[3].hostPath.path: Required value`,
			`spec.volumes[4].hostPath.path: Invalid value: "/a/../b": must not contain '..'`}},
		{name: "a request is not above its limit", spec: one(`resources: {requests: {cpu: 2}, limits: {cpu: 1}}`), want: []string{`spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`}},
		{name: "a quantity is not negative", spec: one(`resources: {limits: {cpu: -1}}`), want: []string{`spec.containers[0].resources.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0`}},
		{name: "a probe has one handler", spec: one(`livenessProbe: {}, readinessProbe: {exec: {command: [x]}, tcpSocket: {port: 1}}`), want: []string{
			`spec.containers[0].livenessProbe: Required value: must specify a handler type`,
			`spec.containers[0].readinessProbe: Forbidden: may not specify more than 1 handler type`}},
		{name: "a handler says what it does", spec: one(`livenessProbe: {exec: {}}, readinessProbe: {httpGet: {port: 0, scheme: x}}, startupProbe: {tcpSocket: {port: UP}}, lifecycle: {preStop: {}, postStart: {httpGet: {port: 1, path: x}}}`), want: []string{
			`spec.containers[0].livenessProbe.exec.command: Required value`,
			`spec.containers[0].readinessProbe.httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive`,
			`spec.containers[0].readinessProbe.httpGet.scheme: Unsupported value: "x": supported values: "HTTP", "HTTPS"`,
			`spec.containers[0].startupProbe.tcpSocket.port: Invalid value: "UP": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)`,
			`spec.containers[0].startupProbe.tcpSocket.port: Invalid value: "UP": must contain at least one letter (a-z)`,
			`spec.containers[0].lifecycle.preStop: Required value: must specify a handler type`}},
		{name: "a probe's times are not negative", spec: one(`readinessProbe: {grpc: {port: 1}, initialDelaySeconds: -1, timeoutSeconds: -1, periodSeconds: -1, successThreshold: -1, failureThreshold: -1}`), want: []string{
			`spec.containers[0].readinessProbe.initialDelaySeconds: Invalid value: -1: must be greater than or equal to 0`,
			`spec.containers[0].readinessProbe.timeoutSeconds: Invalid value: -1: must be greater than or equal to 0`,
			`spec.containers[0].readinessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0`,
			`spec.containers[0].readinessProbe.successThreshold: Invalid value: -1: must be greater than or equal to 0`,
			`spec.containers[0].readinessProbe.failureThreshold: Invalid value: -1: must be greater than or equal to 0`}},
		{name: "a probe that restarts succeeds at once, and only it has a grace period", spec: one(`livenessProbe: {grpc: {port: 1}, successThreshold: 2}, readinessProbe: {grpc: {port: 1}, terminationGracePeriodSeconds: 1}`), want: []string{
			`spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1`,
			`spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 1: must not be set for readinessProbes`}},
		{name: "an init container that ends is not probed", spec: pod(`initContainers: [{name: b, image: x, livenessProbe: {}, readinessProbe: {}, startupProbe: {}, lifecycle: {}}]`), want: []string{
			`spec.initContainers[0].lifecycle: Forbidden: may not be set for init containers without restartPolicy=Always`,
			`spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always`,
			`spec.initContainers[0].readinessProbe: Forbidden: may not be set for init containers without restartPolicy=Always`,
			`spec.initContainers[0].startupProbe: Forbidden: may not be set for init containers without restartPolicy=Always`}},
		{name: "one that stays is", spec: pod(`initContainers: [{name: b, image: x, restartPolicy: Always, livenessProbe: {}}]`), want: []string{`spec.initContainers[0].livenessProbe: Required value: must specify a handler type`}},
		{name: "policies of the pod are known ones", spec: pod(`restartPolicy: x, dnsPolicy: x`), want: []string{
			`spec.restartPolicy: Unsupported value: "x": supported values: "Always", "Never", "OnFailure"`,
			`spec.dnsPolicy: Unsupported value: "x": supported values: "ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"`}},
		{name: "no DNS of the cluster means some other", spec: pod(`dnsPolicy: None`), want: []string{"spec.dnsConfig: Required value: a nameserver is needed when `dnsPolicy` is None"}},
		{name: "names in the pod are names", spec: pod(`serviceAccountName: "-", hostname: a.b, runtimeClassName: "-"`), want: []string{
			`spec.serviceAccountName: Invalid value: "-": ` + dnsSubdomain, `spec.hostname: Invalid value: "a.b": must not contain dots`, `spec.runtimeClassName: Invalid value: "-": ` + dnsSubdomain}},
		{name: "a host alias is of an address", spec: pod(`hostAliases: [{ip: x, hostnames: [a, "-"]}, {ip: "::1"}]`), want: []string{
			`spec.hostAliases[0].ip: Invalid value: "x": must be a valid IP address`, `spec.hostAliases[0].hostnames[1]: Invalid value: "-": ` + dnsSubdomain}},
		{name: "a readiness gate is a condition", spec: pod(`readinessGates: [{conditionType: InPlaceUpdateReady}, {conditionType: ""}]`), want: []string{
			`spec.readinessGates[1].conditionType: Invalid value: "": name part must be non-empty`,
			`spec.readinessGates[1].conditionType: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`}},
		{name: "a template has no ephemeral containers", spec: pod(`ephemeralContainers: [{name: b}]`), want: []string{`spec.ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template`}},
		{name: "a toleration makes sense", spec: pod(`tolerations: [{value: a}, {operator: Exists, value: a}, {operator: Exists, effect: x}, {operator: Exists, tolerationSeconds: 1}]`), want: []string{
			"spec.tolerations[0].operator: Invalid value: \"\": operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
			`spec.tolerations[1].operator: Invalid value: "a": value must be empty when ` + "`operator`" + ` is 'Exists'`,
			`spec.tolerations[2].effect: Unsupported value: "x": supported values: "NoExecute", "NoSchedule", "PreferNoSchedule"`,
			"spec.tolerations[3].effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set"}},
		{name: "a toleration's value is a label's", spec: pod(`tolerations: [{key: a, value: "-"}]`), want: []string{
			`spec.tolerations[0].operator: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`}},
		{name: "a kind of spread constraint comes once", spec: pod(`topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 2, topologyKey: z, whenUnsatisfiable: DoNotSchedule}]`), want: []string{
			`spec.topologySpreadConstraints[1].{topologyKey, whenUnsatisfiable}: Duplicate value: "{z, DoNotSchedule}"`}},
		{name: "a spread constraint is complete", spec: pod(`topologySpreadConstraints: [{}]`), want: []string{
			`spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero`,
			`spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty`,
			`spec.topologySpreadConstraints[0].whenUnsatisfiable: Required value`}},
		{name: "an affinity is complete", spec: pod(`affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {}, preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0}]},
			podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{}]}, podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 101, podAffinityTerm: {topologyKey: z, namespaces: ["-"]}}]}}`), want: []string{
			`spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at least one node selector term`,
			`spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0: must be in the range 1-100`,
			`spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Required value: can not be empty`,
			`spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 101: must be in the range 1-100`,
			`spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.namespaces: Invalid value: "-": ` + dnsLabel}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			template := &corev1.PodTemplateSpec{Spec: *parse[corev1.PodSpec](t, tc.spec)}
			template.Labels = tc.labels
			Settings{}.ApplyDefaults(template)
			var got []string
			for _, err := range Validate(template, tc.claims, nil) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

const dnsSubdomain = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`

func TestClaimNames(t *testing.T) {
	claims := parse[struct {
		Items []corev1.PersistentVolumeClaim
	}](t, `{items: [{metadata: {name: a}}, {metadata: {name: b}}]}`)
	if diff := cmp.Diff([]string{"a", "b"}, ClaimNames(claims.Items)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
