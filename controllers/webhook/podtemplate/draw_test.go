// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"
)

// drawTemplate draws templates out of parts that are right, wrong or only half filled in.
func drawTemplate(t *rapid.T) *corev1.PodTemplateSpec {
	pick := func(label string, texts ...string) string { return rapid.SampledFrom(texts).Draw(t, label) }
	text := `{"metadata":{"labels":{"app":` + pick("label", `"x"`, `"-"`, `""`) + `}},"spec":{` +
		`"hostNetwork":` + pick("hostNetwork", "true", "false") +
		`,"restartPolicy":` + pick("restartPolicy", `""`, `"Always"`, `"Never"`, `"x"`) +
		`,"nodeSelector":` + pick("nodeSelector", `{}`, `{"a":"b"}`, `{"a":"b c"}`) +
		`,"volumes":[` + pick("volume", `{"name":"v"}`, `{"name":"v","secret":{"secretName":"s"}}`, `{"name":"V","persistentVolumeClaim":{"claimName":""}}`, `{"name":"v","emptyDir":{},"hostPath":{"path":"/"}}`) + `]` +
		`,"tolerations":[` + pick("toleration", ``, `{"operator":"Exists"}`, `{"key":"a","value":"b"}`, `{"effect":"x"}`) + `]` +
		`,"initContainers":[` + pick("init", ``, drawContainer(pick, "init ")) + `]` +
		`,"containers":[` + drawContainer(pick, "first ") + pick("second", ``, `,`+drawContainer(pick, "second ")) + `]}}`
	template := &corev1.PodTemplateSpec{}
	if err := json.Unmarshal([]byte(text), template); err != nil {
		t.Fatalf("reading %s: %v", text, err)
	}
	return template
}

func drawContainer(pick func(string, ...string) string, label string) string {
	return `{"name":` + pick(label+"name", `"a"`, `"b"`, `"A"`, `""`) +
		`,"image":` + pick(label+"image", `"x"`, `"x:1"`, `""`) +
		`,"ports":[` + pick(label+"port", ``, `{"containerPort":80,"hostPort":80}`, `{"containerPort":80,"hostPort":81,"name":"http"}`, `{"containerPort":0,"protocol":"x"}`) + `]` +
		`,"env":[` + pick(label+"env", ``, `{"name":"a","value":"b"}`, `{"name":"="}`, `{"name":"a","valueFrom":{}}`, `{"name":"a","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}`) + `]` +
		`,"volumeMounts":[` + pick(label+"mount", ``, `{"name":"v","mountPath":"/x"}`, `{"name":"w","mountPath":"/x"}`, `{"name":"v","mountPath":"","subPath":"../x"}`) + `]` +
		`,"resources":` + pick(label+"resources", `{}`, `{"limits":{"cpu":"1"}}`, `{"limits":{"cpu":"1"},"requests":{"cpu":"2"}}`, `{"requests":{"memory":"-1"}}`) +
		`,"livenessProbe":` + pick(label+"liveness", `null`, `{"httpGet":{"port":80}}`, `{"exec":{}}`, `{"tcpSocket":{"port":"x"},"successThreshold":2}`, `{}`) +
		`,"lifecycle":` + pick(label+"lifecycle", `null`, `{}`, `{"preStop":{"exec":{"command":["x"]}}}`, `{"postStart":{}}`) +
		`}`
}

func FuzzValidate(f *testing.F) {
	f.Add([]byte(`{"spec":{"containers":[{"name":"a","livenessProbe":{},"lifecycle":{"preStop":{}},"env":[{"valueFrom":{}}],"volumeDevices":[{}]}],"volumes":[{"projected":{"sources":[{}]}}]}}`))
	f.Add([]byte(`{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{}},"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{}]}},"topologySpreadConstraints":[{}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		template := &corev1.PodTemplateSpec{}
		if json.Unmarshal(data, template) != nil {
			return
		}
		Validate(template, nil, field.NewPath("spec", "template"))
		Settings{HostNetworkHostPorts: true}.ApplyDefaults(template)
		Validate(template, []string{"x"}, field.NewPath("spec", "template"))
	})
}
