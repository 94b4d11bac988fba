// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regatta-sh/regatta/test/terminal"
)

// united is a UnitedDeployment of Advanced StatefulSets.
func united(name string) string {
	return strings.ReplaceAll(`
apiVersion: apps.kruise.io/v1beta1
kind: UnitedDeployment
metadata: {namespace: default, name: NAME, labels: {app: NAME, team: a}}
spec:
  selector: {matchLabels: {app: NAME}}
  topology: {subsets: [{name: a}]}
  template:
    advancedStatefulSetTemplate:
      metadata: {labels: {app: NAME}}
      spec:
        selector: {matchLabels: {app: NAME}}
        template:
          metadata: {labels: {app: NAME}}
          spec: {containers: [{name: main, image: "web:1", ports: [{containerPort: 8080, name: http}]}]}
`, "NAME", name)
}

// workloads are objects of all kinds with a selector, by the word that names them.
func workloads(name string) map[string]string {
	return map[string]string{
		"clone": cloneSet(name), "asts": workload(kruiseVersion, "StatefulSet", name), "ads": workload(kruiseVersion, "DaemonSet", name),
		"ud": united(name), "deployment": workload("apps/v1", "Deployment", name), "statefulset": workload("apps/v1", "StatefulSet", name),
		"daemonset": workload("apps/v1", "DaemonSet", name),
	}
}

// deleteLater deletes an object that a command made when the test ends.
func (s *shop) deleteLater(t *testing.T, text string) {
	t.Helper()
	object := s.ReadObject(t, text)
	t.Cleanup(func() {
		if err := s.Delete(context.Background(), object); err != nil {
			t.Error(err)
		}
	})
}

func TestExposeEachKind(t *testing.T) {
	const service = "{apiVersion: v1, kind: Service, metadata: {namespace: default, name: web}}"
	s := newShop(t)
	for word, text := range workloads("web") {
		t.Run(word, func(t *testing.T) {
			s.CreateObjects(t, text)
			s.wants(t, NewExposeCommand(), word+"/web --dry-run=server", typed{Out: "service/web exposed (server dry run)\n"})
			s.wants(t, NewExposeCommand(), word+" web --field-manager me", typed{Out: "service/web exposed\n"})
			s.deleteLater(t, service)
			got := s.ReadObject(t, service)
			if diff := cmp.Diff(map[string]string{"app": "web", "team": "a"}, got.GetLabels()); diff != "" {
				t.Errorf("labels: (-want +got)\n%s", diff)
			}
			if manager := got.GetManagedFields()[0].Manager; manager != "me" {
				t.Errorf("the fields belong to %s", manager)
			}
			for field, want := range map[string]string{
				"spec.ports": "- port: 8080\n  protocol: TCP\n  targetPort: 8080\n", "spec.selector": "app: web\n", "spec.type": "ClusterIP\n",
			} {
				if diff := cmp.Diff(want, s.ReadField(t, service, field)); diff != "" {
					t.Errorf("%s: (-want +got)\n%s", field, diff)
				}
			}
			s.wants(t, NewExposeCommand(), word+"/web", typed{Err: "Service web exists already in namespace default", Code: 3})
		})
	}
}

func TestExposeManifests(t *testing.T) {
	s := newShop(t)
	dns := `spec: {template: {spec: {containers: [
		{name: dns, image: x, ports: [{containerPort: 53, name: dns, protocol: UDP}, {containerPort: 53, name: dns-tcp, protocol: TCP}, {containerPort: 9153}]},
		{name: other, image: x, ports: [{containerPort: 9153, protocol: TCP}, {containerPort: 8125, protocol: UDP}]}]}}}`
	s.CreateObjects(t, cloneSet("web"), change(t, cloneSet("dns"), dns), change(t, cloneSet("bare"), `spec: {template: {spec: {containers: [{name: main, image: x}]}}}`),
		change(t, cloneSet("chosen"), `spec: {selector: {matchExpressions: [{key: app, operator: Exists}]}}`), change(t, cloneSet("long"), "metadata: {name: "+strings.Repeat("a", 62)+"-b}"))
	for name, tc := range map[string]struct{ line, want string }{
		"the ports and the protocols of the containers": {"clone/dns", `
metadata:
  labels: {app: dns, team: a}
  name: dns
spec:
  ports:
  - {name: port-1-udp, port: 53, protocol: UDP, targetPort: 53}
  - {name: port-1-tcp, port: 53, protocol: TCP, targetPort: 53}
  - {name: port-2, port: 9153, protocol: TCP, targetPort: 9153}
  - {name: port-3, port: 8125, protocol: UDP, targetPort: 8125}
  selector: {app: dns}
`},
		"one port, with the protocol of the named port of the pods": {"clone/dns --port 5353 --target-port dns --name names --labels a=b --selector c=d -n shop", `
metadata:
  labels: {a: b}
  name: names
  namespace: shop
spec:
  ports:
  - {port: 5353, protocol: UDP, targetPort: dns}
  selector: {c: d}
`},
		"a port that no container has, and all other fields": {"clone/web --port 80,443 --target-port 8443 --protocol SCTP --type LoadBalancer --load-balancer-ip 1.2.3.4 --external-ip 10.1.1.1 --session-affinity ClientIP", `
metadata:
  labels: {app: web, team: a}
  name: web
spec:
  externalIPs: [10.1.1.1]
  loadBalancerIP: 1.2.3.4
  ports:
  - {name: port-1, port: 80, protocol: SCTP, targetPort: 8443}
  - {name: port-2, port: 443, protocol: SCTP, targetPort: 8443}
  selector: {app: web}
  sessionAffinity: ClientIP
  type: LoadBalancer
`},
		"a headless Service without ports": {"clone/bare --cluster-ip None --type ClusterIP", `
metadata:
  labels: {app: bare, team: a}
  name: bare
spec:
  clusterIP: None
  selector: {app: bare}
  type: ClusterIP
`},
		"a selector in place of expressions": {"clone/chosen --selector app=chosen", `
metadata:
  labels: {app: chosen, team: a}
  name: chosen
spec:
  ports:
  - {port: 8080, protocol: TCP, targetPort: 8080}
  selector: {app: chosen}
`},
		"a name that is too long for a Service": {"clone/" + strings.Repeat("a", 62) + "-b --labels a=b --selector c=d", `
metadata:
  labels: {a: b}
  name: ` + strings.Repeat("a", 62) + `
spec:
  ports:
  - {port: 8080, protocol: TCP, targetPort: 8080}
  selector: {c: d}
`},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(tc.line, "-n shop") {
				s.CreateObjects(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
				s.CreateObjects(t, change(t, cloneSet("dns"), "metadata: {namespace: shop}\n"+dns))
			}
			got := s.types(t, NewExposeCommand(), tc.line+" --dry-run=client -o yaml")
			if got.Err != "" || got.Code != 0 {
				t.Fatalf("it ended with %d: %s", got.Code, got.Err)
			}
			want := terminal.ParseObject(t, "apiVersion: v1\nkind: Service"+tc.want)
			if diff := cmp.Diff(want.Object, terminal.ParseObject(t, got.Out).Object); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			warning := ""
			if strings.Contains(tc.line, "--external-ip") {
				warning = "Warning: spec.externalIPs is deprecated and may no longer be implemented in some clusters\n"
			}
			s.wants(t, NewExposeCommand(), tc.line+" --dry-run=server -o name", typed{Out: "service/" + want.GetName() + "\n", Err: warning})
		})
	}
}

func TestExposeRefusals(t *testing.T) {
	s := newShop(t)
	s.CreateObjects(t, cloneSet("web"), cloneSet("web.v2"), change(t, cloneSet("bare"), `spec: {template: {spec: {containers: [{name: main, image: x}]}}}`),
		change(t, cloneSet("chosen"), `spec: {selector: {matchExpressions: [{key: app, operator: Exists}]}}`),
		strings.Replace(cloneSet("all"), "matchLabels: {app: all}", "", 1))
	kinds := "clone/NAME, asts/NAME, ads/NAME, ud/NAME, deployment/NAME, statefulset/NAME or daemonset/NAME"
	for line, want := range map[string]typed{
		"":                                                {Err: "name an object; want " + kinds, Code: 2},
		"clone/web --port 0":                              {Err: `--port is "0"; want a number from 1 to 65535`, Code: 2},
		"clone/web --port 80,":                            {Err: `--port is "80,"; want a number from 1 to 65535`, Code: 2},
		"clone/web --port 99999999999":                    {Err: `--port is "99999999999"; want a number from 1 to 65535`, Code: 2},
		"clone/web --port 80,80":                          {Err: `--port is "80,80", which has port 80 twice`, Code: 2},
		"clone/web --target-port a_b":                     {Err: `--target-port is "a_b"; want the number or the name of a port of the pods: must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)`, Code: 2},
		"clone/web --target-port 70000":                   {Err: `--target-port is "70000"; want the number or the name of a port of the pods: must be between 1 and 65535, inclusive`, Code: 2},
		"clone/web --protocol udp":                        {Err: `--protocol is "udp"; want TCP, UDP or SCTP`, Code: 2},
		"clone/web --type ExternalName":                   {Err: `--type is "ExternalName"; want ClusterIP, NodePort or LoadBalancer`, Code: 2},
		"clone/web --session-affinity Cookie":             {Err: `--session-affinity is "Cookie"; want None or ClientIP`, Code: 2},
		"clone/web --cluster-ip none":                     {Err: `--cluster-ip is "none"; want an IP address`, Code: 2},
		"clone/web --external-ip a":                       {Err: `--external-ip is "a"; want an IP address`, Code: 2},
		"clone/web --load-balancer-ip 1.1.1.1":            {Err: `--load-balancer-ip needs --type LoadBalancer`, Code: 2},
		"clone/web --selector app":                        {Err: `--selector is "app"; want labels with their values, such as app=web,tier=gold: invalid selector: [app]`, Code: 2},
		"clone/web -l app":                                {Err: `--labels is "app"; want labels with their values, such as app=web,tier=gold: invalid selector: [app]`, Code: 2},
		"clone/web --name A":                              {Err: `--name is "A": ` + dnsLabel, Code: 2},
		"clone web bare --name one":                       {Err: "--name is the name of one object; name one CloneSet", Code: 2},
		"clone/web --dry-run":                             {Err: `--dry-run is "unchanged"; want --dry-run=client, --dry-run=server or --dry-run=none`, Code: 2},
		"clone/web --ports 80":                            {Err: "unknown flag: --ports; regatta expose --help lists them", Code: 2},
		"sidecarset/web":                                  {Err: "this command is not for objects of kind SidecarSet; want " + kinds, Code: 2},
		"clone/none":                                      {Err: "there is no CloneSet none in namespace default", Code: 3},
		"clone/bare":                                      {Err: "no container of CloneSet bare has a port; give --port", Code: 1},
		"clone/chosen":                                    {Err: "CloneSet chosen has spec.selector.matchExpressions, which a Service cannot have; give --selector", Code: 1},
		"clone/all":                                       {Err: "spec.selector.matchLabels of CloneSet all is empty; give --selector", Code: 1},
		"clone/web.v2":                                    {Err: "a Service cannot have the name of CloneSet web.v2; give --name: must not contain dots", Code: 1},
		"clone/web --cluster-ip 1.1.1.1 --dry-run=server": {Err: "", Code: 1},
		"clone bare chosen --port 80 --dry-run=client -o name ": {Out: "service/bare\n", Err: "CloneSet chosen has spec.selector.matchExpressions, which a Service cannot have; give --selector", Code: 1},
	} {
		t.Run(line, func(t *testing.T) {
			got := s.types(t, NewExposeCommand(), line)
			if want.Err == "" {
				got.Err = ""
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

const dnsLabel = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
