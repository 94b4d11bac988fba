// SPDX-License-Identifier: Apache-2.0

package set

import (
	"testing"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/test/terminal"
)

const settings = `
apiVersion: v1
kind: ConfigMap
metadata: {namespace: default, name: settings}
data: {log.level: debug, PORT: "80", 1st: x}
binaryData: {BINARY: AA==}
`

const password = `
apiVersion: v1
kind: Secret
metadata: {namespace: default, name: password}
data: {value: eA==}
`

func checkVariables(t *testing.T, s *terminal.Terminal) {
	s.CreateObjects(t, cloneSet("web", podSpec))
	updated := terminal.Result{Out: "cloneset.apps.kruise.io/web env updated\n"}
	types(t, s, "env clone/web -e A=new -e EMPTY= C=c=d", updated)
	want := `
- env:
  - name: A
    value: new
  - name: B
    value: $(A)
  - name: EMPTY
  - name: C
    value: c=d
  image: nginx:1
  name: main
  resources:
    limits:
      cpu: 1000m
- env:
  - name: A
    value: new
  - name: EMPTY
  - name: C
    value: c=d
  image: log:1
  name: log
  terminationMessagePath: /log
`
	has(t, s, cloneSet("web", ""), "spec.template.spec.containers", want)
	types(t, s, "env clone/web A- EMPTY- C- GONE- -c lo*", updated)
	types(t, s, "env clone/web GONE-", terminal.Result{Out: "cloneset.apps.kruise.io/web unchanged\n"})
	has(t, s, cloneSet("web", ""), "spec.template.spec.initContainers", `
- env:
  - name: A
    value: new
  - name: EMPTY
  - name: C
    value: c=d
  image: prepare:1
  name: prepare
`)
	types(t, s, "env clone/web --list", terminal.Result{Out: `# CloneSet web, container main
A=new
B=$(A)
EMPTY=
C=c=d
# CloneSet web, container log
# CloneSet web, container prepare
A=new
EMPTY=
C=c=d
`})
}

func checkDuplicates(t *testing.T, s *terminal.Terminal) {
	spec := "containers: [{name: main, env: [{name: X}, {name: A, value: '1'}, {name: X}, {name: A, value: '2'}]}]"
	s.CreateObjects(t, cloneSet("web", spec))
	types(t, s, "env clone/web A=1 --overwrite=false", terminal.Result{
		Err: "changing CloneSet web: variable A of container main has another value, and --overwrite is false", Code: exit.Refused,
	})
	types(t, s, "env clone/web A=1", terminal.Result{Out: "cloneset.apps.kruise.io/web env updated\n"})
	has(t, s, cloneSet("web", ""), "spec.template.spec.containers", `
- env:
  - name: X
  - name: A
    value: "1"
  - name: X
  name: main
`)
}

func checkOverwrite(t *testing.T, s *terminal.Terminal) {
	s.CreateObjects(t, cloneSet("web", podSpec), password)
	before := s.ReadField(t, cloneSet("web", ""), "metadata.resourceVersion")
	refused := terminal.Result{Err: "changing CloneSet web: variable A of container main has another value, and --overwrite is false", Code: exit.Refused}
	types(t, s, "env clone/web A=secret-value --overwrite=false", refused)
	types(t, s, "env clone/web N=1 A=secret-value --overwrite=false", refused)
	types(t, s, "env clone/web --from secret/password --overwrite=false --prefix A --keys value -c main", terminal.Result{
		Out: "cloneset.apps.kruise.io/web env updated\n", Err: "key value of Secret password becomes variable AVALUE\n",
	})
	if before == s.ReadField(t, cloneSet("web", ""), "metadata.resourceVersion") {
		t.Error("nothing was written")
	}
	types(t, s, "env clone/web AVALUE=1 --overwrite=false -c main", terminal.Result{
		Err: "changing CloneSet web: variable AVALUE of container main has another value, and --overwrite is false", Code: exit.Refused,
	})
	types(t, s, "env clone/web A=a --overwrite=false -c main", terminal.Result{Out: "cloneset.apps.kruise.io/web unchanged\n"})
	types(t, s, "env clone/web NEW=a --overwrite=false -c main", terminal.Result{Out: "cloneset.apps.kruise.io/web env updated\n"})
}

func checkSources(t *testing.T, s *terminal.Terminal) {
	s.CreateObjects(t, cloneSet("web", podSpec), settings, password, "{apiVersion: v1, kind: Secret, metadata: {namespace: default, name: empty}}")
	types(t, s, "env clone/web -c log --from cm/settings", terminal.Result{
		Err: "key 1st of ConfigMap settings becomes variable 1ST\nkey log.level of ConfigMap settings becomes variable LOG_LEVEL\n" +
			`"1ST" is not the name of a variable: a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is '[-._a-zA-Z][-._a-zA-Z0-9]*')`,
		Code: exit.Usage,
	})
	types(t, s, "env clone/web -c log --from configmap/settings --keys PORT,log.level --prefix P_ X=1", terminal.Result{
		Out: "cloneset.apps.kruise.io/web env updated\n", Err: "key log.level of ConfigMap settings becomes variable P_LOG_LEVEL\n",
	})
	types(t, s, "env clone/web -c log --from secret/password VALUE=1", terminal.Result{
		Err: "key value of Secret password becomes variable VALUE\nvariable VALUE is set twice, or set and removed; name it once", Code: exit.Usage,
	})
	types(t, s, "env clone/web -c log --from secret/password", terminal.Result{
		Out: "cloneset.apps.kruise.io/web env updated\n", Err: "key value of Secret password becomes variable VALUE\n",
	})
	types(t, s, "env clone/web -c log --list", terminal.Result{Out: `# CloneSet web, container log
P_X=1
# P_PORT from configmap settings, key PORT
# P_LOG_LEVEL from configmap settings, key log.level
# VALUE from secret password, key value
`})
	types(t, s, "env clone/web -c log --list VALUE=shown", terminal.Result{Out: `# CloneSet web, container log
P_X=1
# P_PORT from configmap settings, key PORT
# P_LOG_LEVEL from configmap settings, key log.level
VALUE=shown
`})
	has(t, s, cloneSet("web", ""), "spec.template.spec.containers", `
- env:
  - name: A
    value: a
  - name: B
    value: $(A)
  image: nginx:1
  name: main
  resources:
    limits:
      cpu: 1000m
- env:
  - name: P_X
    value: "1"
  - name: P_PORT
    valueFrom:
      configMapKeyRef:
        key: PORT
        name: settings
  - name: P_LOG_LEVEL
    valueFrom:
      configMapKeyRef:
        key: log.level
        name: settings
  - name: VALUE
    valueFrom:
      secretKeyRef:
        key: value
        name: password
  image: log:1
  name: log
  terminationMessagePath: /log
`)
	for line, want := range map[string]terminal.Result{
		"env clone/web --from cm/gone":                         {Err: "there is no ConfigMap gone in namespace default", Code: exit.Failed},
		"env clone/web --from secret/empty":                    {Err: "Secret empty has no keys in data", Code: exit.Refused},
		"env clone/web --from secret/password --keys value,no": {Err: `Secret password has no key "no"; it has value`, Code: exit.Refused},
		"env clone/web --from secret/password --keys BINARY":   {Err: `Secret password has no key "BINARY"; it has value`, Code: exit.Refused},
	} {
		types(t, s, line, want)
	}
}

func checkResourcesPolicy(t *testing.T, s *terminal.Terminal) {
	set := `
apiVersion: apps.kruise.io/v1beta1
kind: SidecarSet
metadata: {name: proxy}
spec:
  selector: {matchLabels: {app: web}}
  containers:
  - {name: log, image: "log:1"}
  - name: main
    image: nginx:1
    resourcesPolicy: {targetContainersMode: sum, resourcesExpr: {limits: {cpu: cpu*10%}}}
`
	s.CreateObjects(t, set)
	types(t, s, "resources sidecarset/proxy --limits cpu=1", terminal.Result{
		Err: "changing SidecarSet proxy: spec.containers[1].resourcesPolicy computes the resources of container main; remove it, or select other containers with --containers", Code: exit.Refused,
	})
	types(t, s, "resources sidecarset/proxy --limits cpu=0,example.com/gpu=2,hugepages-2Mi=4Mi --requests memory=1024Mi -c log", terminal.Result{
		Out: "sidecarset.apps.kruise.io/proxy resource requirements updated\n",
	})
	has(t, s, set, "spec.containers", `
- image: log:1
  name: log
  resources:
    limits:
      cpu: "0"
      example.com/gpu: "2"
      hugepages-2Mi: 4Mi
    requests:
      memory: 1Gi
- image: nginx:1
  name: main
  resourcesPolicy:
    resourcesExpr:
      limits:
        cpu: cpu*10%
    targetContainersMode: sum
    targetContainersNameRegex: .*
`)
}

func checkServiceAccount(t *testing.T, s *terminal.Terminal) {
	s.CreateObjects(t, cloneSet("web", "containers: []\nserviceAccount: old"))
	types(t, s, "sa clone/web old", terminal.Result{Out: "cloneset.apps.kruise.io/web unchanged\n"})
	types(t, s, "sa clone/web new", terminal.Result{Out: "cloneset.apps.kruise.io/web serviceaccount updated\n"})
	has(t, s, cloneSet("web", ""), "spec.template.spec", "containers: []\nserviceAccount: new\nserviceAccountName: new\n")
}
