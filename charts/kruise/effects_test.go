// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// An effect is what a value does to an object of the release, by its kind and name.
type effect struct {
	value string // as JSON
	on    string
	// has is a text that the object has with the value, and not without. If it begins with
	// "no ", the object itself is there without the value alone.
	has string
}

const (
	managerOf = "Deployment kruise-controller-manager"
	agentOf   = "DaemonSet kruise-daemon"
	hookOf    = "Job kruise-finalizer"
	absent    = "no "
)

// together are values that can be set at once; the keys are those of values.yaml.
func together() map[string]effect {
	return map[string]effect{
		"featureGates":                                {`"ImagePullJobGate=true,EnableExternalCerts=true"`, managerOf, "--feature-gates=ImagePullJobGate=true,EnableExternalCerts=true"},
		"helmHooks.upgradeCheck":                      {`false`, "Job kruise-upgrade-check", absent},
		"installation.namespace":                      {`"platform"`, managerOf, "namespace: platform"},
		"installation.createNamespace":                {`false`, "Namespace kruise-system", absent},
		"installation.roleListGroups":                 {`["stable.example.com"]`, "ClusterRole kruise-list-role", "stable.example.com"},
		"crds.keep":                                   {`false`, "CustomResourceDefinition clonesets.apps.kruise.io", "annotations:\n    cert-manager.io/inject-ca-from"},
		"imagePullSecrets":                            {`[{"name":"registry"}]`, managerOf, "- name: registry"},
		"manager.log.level":                           {`"5"`, managerOf, "--v=5"},
		"manager.loggingFormat":                       {`"json"`, managerOf, "--logging-format=json"},
		"manager.replicas":                            {`3`, managerOf, "replicas: 3"},
		"manager.image.repository":                    {`"mirror/manager"`, managerOf, "mirror/manager:"},
		"manager.image.tag":                           {`"9.9"`, managerOf, ":9.9"},
		"manager.resources.limits.cpu":                {`"900m"`, managerOf, "cpu: 900m"},
		"manager.resources.limits.memory":             {`"901Mi"`, managerOf, "memory: 901Mi"},
		"manager.resources.requests.cpu":              {`"102m"`, managerOf, "cpu: 102m"},
		"manager.resources.requests.memory":           {`"103Mi"`, managerOf, "memory: 103Mi"},
		"manager.metrics.port":                        {`18080`, "Service kruise-controller-manager", "port: 18080"},
		"manager.webhook.port":                        {`19443`, managerOf, "containerPort: 19443"},
		"manager.healthProbe.port":                    {`18000`, managerOf, "--health-probe-addr=:18000"},
		"manager.decisions.port":                      {`18443`, managerOf, "--decisions-addr=:18443"},
		"manager.decisions.apiService.enabled":        {`false`, "APIService v1alpha1.decisions.kruise.io", absent},
		"manager.pprofAddr":                           {`"localhost:18090"`, managerOf, "--pprof-addr=localhost:18090"},
		"manager.resyncPeriod":                        {`"10h"`, managerOf, "--sync-period=10h"},
		"manager.nodeAffinity":                        {`{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"infra","operator":"Exists"}]}]}}`, managerOf, "key: infra"},
		"manager.nodeSelector":                        {`{"pool":"infra"}`, managerOf, "nodeSelector:\n        pool: infra"},
		"manager.tolerations":                         {`[{"key":"infra","operator":"Exists"}]`, hookOf, "key: infra"},
		"manager.podAntiAffinity":                     {`{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"rack"}]}`, managerOf, "topologyKey: rack"},
		"policies.tenantHosts":                        {`["*.example.com"]`, managerOf, "--tenant-bundle-hosts=*.example.com"},
		"imagePullJobs.secretNamespaces":              {`["shop"]`, "RoleBinding kruise-pull-secrets", "namespace: shop"},
		"decisionLogs.stdout":                         {`true`, managerOf, "--decision-log-stdout"},
		"decisionLogs.file.path":                      {`"/log/d.log"`, managerOf, "--decision-log-file=/log/d.log"},
		"decisionLogs.file.maxSizeMiB":                {`7`, managerOf, "--decision-log-file-max-size=7"},
		"decisionLogs.file.keep":                      {`2`, managerOf, "--decision-log-file-keep=2"},
		"decisionLogs.http.url":                       {`"https://logs.example.com"`, managerOf, "--decision-log-url=https://logs.example.com"},
		"decisionLogs.http.tokenSecret":               {`"token"`, managerOf, "secretName: \"token\""},
		"decisionLogs.http.ca.configMap":              {`"logs-ca"`, managerOf, "name: \"logs-ca\""},
		"decisionLogs.http.ca.key":                    {`"root.pem"`, managerOf, "key: \"root.pem\""},
		"decisionLogs.http.headers":                   {`{"X-Tenant":"a"}`, managerOf, `X-Tenant=a`},
		"decisionLogs.http.interval":                  {`"1m"`, managerOf, "--decision-log-interval=1m"},
		"decisionLogs.mask":                           {`["/input/owner"]`, managerOf, "--decision-log-mask=/input/owner"},
		"decisionLogs.points":                         {`["rollout/plan"]`, managerOf, "--decision-log-points=rollout/plan"},
		"serviceAccount.annotations":                  {`{"cloud":"identity"}`, "ServiceAccount kruise-manager", "cloud: identity"},
		"webhookConfiguration.timeoutSeconds":         {`7`, "ValidatingWebhookConfiguration kruise-validating-webhook-configuration", "timeoutSeconds: 7"},
		"webhookConfiguration.failurePolicy.pods":     {`"Fail"`, managerOf, "--pod-failure-policy=Fail"},
		"webhookConfiguration.clientCA.configMap":     {`"front-proxy"`, managerOf, "name: \"front-proxy\""},
		"webhookConfiguration.clientCA.key":           {`"front.pem"`, managerOf, "key: \"front.pem\""},
		"webhookConfiguration.clientNames":            {`["front-proxy-client"]`, managerOf, "--webhook-client-names=front-proxy-client"},
		"networkPolicy.enabled":                       {`true`, "NetworkPolicy kruise-controller-manager", "kind: NetworkPolicy"},
		"networkPolicy.apiServers":                    {`[{"ipBlock":{"cidr":"10.0.0.10/32"}}]`, "NetworkPolicy kruise-controller-manager", "10.0.0.10/32"},
		"externalCerts.annotations":                   {`{"cert-manager.io/inject-ca-from":"platform/certs"}`, "MutatingWebhookConfiguration kruise-mutating-webhook-configuration", "platform/certs"},
		"enableKubeCacheMutationDetector":             {`true`, managerOf, "KUBE_CACHE_MUTATION_DETECTOR"},
		"helmHooks.image.repository":                  {`"mirror/hook"`, hookOf, "mirror/hook:"},
		"helmHooks.image.tag":                         {`"7.7"`, hookOf, ":7.7"},
		"manager.priorityClassName":                   {`"platform-manager"`, managerOf, `priorityClassName: platform-manager`},
		"manager.imagePullPolicy":                     {`"Always"`, managerOf, `imagePullPolicy: Always`},
		"manager.podLabels":                           {`{"team":"platform"}`, managerOf, `team: platform`},
		"manager.podAnnotations":                      {`{"scrape":"yes"}`, managerOf, `scrape: "yes"`},
		"manager.dnsConfig":                           {`{"options":[{"name":"ndots","value":"1"}]}`, managerOf, `name: ndots`},
		"daemon.priorityClassName":                    {`"platform-daemon"`, agentOf, `priorityClassName: platform-daemon`},
		"daemon.imagePullPolicy":                      {`"Always"`, agentOf, `imagePullPolicy: Always`},
		"daemon.podLabels":                            {`{"team":"platform"}`, agentOf, `team: platform`},
		"daemon.podAnnotations":                       {`{"scrape":"yes"}`, agentOf, `scrape: "yes"`},
		"daemon.dnsConfig":                            {`{"options":[{"name":"ndots","value":"1"}]}`, agentOf, `name: ndots`},
		"manager.runAsUser":                           {`1234`, managerOf, "runAsUser: 1234"},
		"service.ipFamilyPolicy":                      {`"PreferDualStack"`, "Service kruise-webhook-service", "ipFamilyPolicy: PreferDualStack"},
		"service.ipFamilies":                          {`["IPv6","IPv4"]`, "Service kruise-controller-manager", "- IPv6"},
		"openshift.enabled":                           {`true`, "SecurityContextConstraints kruise-daemon", "allowHostNetwork: true"},
		"daemon.namespace":                            {`"agents"`, agentOf, "namespace: agents"},
		"daemon.seLinuxOptions":                       {`{"type":"super_t"}`, agentOf, "type: super_t"},
		"manager.extraArgs":                           {`["--expectation-timeout=10m"]`, managerOf, "--expectation-timeout=10m"},
		"manager.extraEnv":                            {`[{"name":"HTTPS_PROXY","value":"http://proxy:3128"}]`, managerOf, "HTTPS_PROXY"},
		"manager.topologySpreadConstraints":           {`[{"topologyKey":"rack","maxSkew":2,"whenUnsatisfiable":"DoNotSchedule"}]`, managerOf, "topologyKey: rack"},
		"daemon.extraArgs":                            {`["--log-flush-frequency=7s"]`, agentOf, "--log-flush-frequency=7s"},
		"daemon.tolerations":                          {`[{"key":"apps","operator":"Exists"}]`, agentOf, "key: apps"},
		"daemon.updateStrategy":                       {`{"type":"OnDelete"}`, agentOf, "type: OnDelete"},
		"extraObjects":                                {`[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"more"}}]`, "ConfigMap more", "kind: ConfigMap"},
		"daemon.log.level":                            {`"6"`, agentOf, "--v=6"},
		"daemon.port":                                 {`20221`, agentOf, "--addr=:20221"},
		"daemon.enablePprof":                          {`false`, agentOf, "--enable-pprof=false"},
		"daemon.pprofAddr":                            {`"localhost:20222"`, agentOf, "--pprof-addr=localhost:20222"},
		"daemon.image.repository":                     {`"mirror/agent"`, agentOf, "mirror/agent:"},
		"daemon.image.tag":                            {`"8.8"`, agentOf, ":8.8"},
		"daemon.socketLocation":                       {`"/run/k3s"`, agentOf, "/run/k3s"},
		"daemon.socketFile":                           {`"containerd/k3s.sock"`, agentOf, "--socket-file=containerd/k3s.sock"},
		"daemon.nodeSelector":                         {`{"pool":"apps"}`, agentOf, "pool: apps"},
		"daemon.affinity":                             {`{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"apps","operator":"Exists"}]}]}}}`, agentOf, "key: apps"},
		"daemon.resources.limits.cpu":                 {`"51m"`, agentOf, "cpu: 51m"},
		"daemon.resources.limits.memory":              {`"129Mi"`, agentOf, "memory: 129Mi"},
		"daemon.resources.requests.cpu":               {`"11m"`, agentOf, "cpu: 11m"},
		"daemon.resources.requests.memory":            {`"12Mi"`, agentOf, "memory: 12Mi"},
		"daemon.extraEnvs":                            {`[{"name":"HTTPS_PROXY","value":"http://proxy:3128"}]`, agentOf, "HTTPS_PROXY"},
		"daemon.credentialProvider.enable":            {`true`, agentOf, "CredentialProviderPlugin.yaml"},
		"daemon.credentialProvider.hostPath":          {`"plugins"`, agentOf, "path: \"/plugins\""},
		"daemon.credentialProvider.configmap":         {`"providers"`, agentOf, "name: \"providers\""},
		"daemon.credentialProvider.awsCredentialsDir": {`"/root/.aws"`, agentOf, "path: \"/root/.aws\""},
	}
}

// apart are values that exclude others.
func apart() map[string]effect {
	return map[string]effect{
		"crds.managed":                         {`false`, "CustomResourceDefinition clonesets.apps.kruise.io", absent},
		"manager.hostNetwork":                  {`true`, managerOf, "hostNetwork: true"},
		"decisionLogs.unmasked":                {`true`, managerOf, "--decision-log-unmasked"},
		"webhookConfiguration.clientCA.secret": {`"front-tls"`, managerOf, "secretName: \"front-tls\""},
		"webhookConfiguration.url":             {`"https://localhost:9443"`, "ValidatingWebhookConfiguration kruise-validating-webhook-configuration", "https://localhost:9443/validate"},
		"image.registry":                       {`"mirror.example.com"`, managerOf, "mirror.example.com/regatta-sh/regatta:"},
		"decisionLogs.http.url":                {`"https://logs.example.com"`, managerOf, "--decision-log-url=https://logs.example.com"},
		"decisionLogs.http.ca.secret":          {`"logs-tls"`, managerOf, "secretName: \"logs-tls\""},
	}
}

// tuned are values that say how fast the manager and the agents work.
func tuned() map[string]effect {
	return map[string]effect{
		"manager.workers":                          {`{"cloneSet":11,"containerRecreateRequest":12,"workloadSpread":null}`, managerOf, "--cloneset-workers=11\n            - --crr-workers=12\n"},
		"manager.kubeAPI.qps":                      {`250.5`, managerOf, "--rest-config-qps=250.5"},
		"manager.kubeAPI.burst":                    {`700`, managerOf, "--rest-config-burst=700"},
		"manager.leaderElection.leaseDuration":     {`"60s"`, managerOf, "--leader-election-lease-duration=60s"},
		"manager.leaderElection.renewDeadline":     {`"40s"`, managerOf, "--leader-election-renew-deadline=40s"},
		"manager.leaderElection.retryPeriod":       {`"5s"`, managerOf, "--leader-election-retry-period=5s"},
		"flowControl.matchingPrecedence":           {`800`, "FlowSchema kruise-daemon", "matchingPrecedence: 800"},
		"flowControl.manager.shares":               {`25`, "PriorityLevelConfiguration kruise-manager", "nominalConcurrencyShares: 25"},
		"flowControl.daemon.shares":                {`15`, "PriorityLevelConfiguration kruise-daemon", "nominalConcurrencyShares: 15"},
		"flowControl.leaderElection.priorityLevel": {`"system"`, "FlowSchema kruise-leader-election", `name: "system"`},
		"daemon.kubeAPI.qps":                       {`7`, agentOf, "--rest-config-qps=7"},
		"daemon.kubeAPI.burst":                     {`9`, agentOf, "--rest-config-burst=9"},
		"daemon.pullWorkers":                       {`4`, agentOf, "--max-workers-for-pull-image=4"},
	}
}

// scaled lets replicas come and go, and has requests wait in levels that are there.
func scaled() map[string]effect {
	const scaler = "HorizontalPodAutoscaler kruise-controller-manager"
	return map[string]effect{
		"manager.autoscaling.enabled":                        {`true`, scaler, "kind: Deployment"},
		"manager.autoscaling.minReplicas":                    {`3`, scaler, "minReplicas: 3"},
		"manager.autoscaling.maxReplicas":                    {`9`, scaler, "maxReplicas: 9"},
		"manager.autoscaling.targetCPUUtilizationPercentage": {`60`, scaler, "averageUtilization: 60"},
		"manager.autoscaling.behavior":                       {`{"scaleUp":{"stabilizationWindowSeconds":7}}`, scaler, "stabilizationWindowSeconds: 7"},
		"flowControl.manager.priorityLevel":                  {`"workload-high"`, "FlowSchema kruise-manager", `name: "workload-high"`},
		"flowControl.daemon.priorityLevel":                   {`"workload-low"`, "FlowSchema kruise-daemon", `name: "workload-low"`},
	}
}

// scaledByMetrics scales by something else than CPU.
func scaledByMetrics() map[string]effect {
	const scaler = "HorizontalPodAutoscaler kruise-controller-manager"
	return map[string]effect{
		"manager.autoscaling.enabled": {`true`, scaler, "kind: Deployment"},
		"manager.autoscaling.metrics": {`[{"type":"Resource","resource":{"name":"memory","target":{"type":"AverageValue","averageValue":"400Mi"}}}]`, scaler, "averageValue: 400Mi"},
	}
}

// unshared has the API server treat us as all others.
func unshared() map[string]effect {
	return map[string]effect{"flowControl.enabled": {`false`, "FlowSchema kruise-manager", absent}}
}

// certified has cert-manager make the certificate.
func certified() map[string]effect {
	const of = "Certificate kruise-webhook-certs"
	return map[string]effect{
		"externalCerts.certManager.enabled":     {`true`, managerOf, "--feature-gates=EnableExternalCerts=true"},
		"externalCerts.certManager.issuerRef":   {`{"name":"company-ca","group":"ca.example.com"}`, of, `name: "company-ca"`},
		"externalCerts.certManager.duration":    {`"48h"`, of, "duration: 48h"},
		"externalCerts.certManager.renewBefore": {`"7h"`, of, "renewBefore: 7h"},
		"externalCerts.certManager.force":       {`true`, of, "secretName: kruise-webhook-certs"}, // helm template does not know that the API is there
	}
}

// measured has Prometheus and Grafana show what runs.
func measured() map[string]effect {
	const managers, agents = "ServiceMonitor kruise-controller-manager", "PodMonitor kruise-daemon"
	const alerts, dashboard, role = "PrometheusRule kruise-alerts", "ConfigMap kruise-regatta-managers", "RoleBinding kruise-prometheus"
	return map[string]effect{
		"metrics.serviceMonitor.enabled":                     {`true`, managers, "port: metrics"},
		"metrics.serviceMonitor.namespace":                   {`"monitoring"`, managers, "namespace: monitoring"},
		"metrics.serviceMonitor.labels":                      {`{"release":"prometheus"}`, managers, "release: prometheus"},
		"metrics.serviceMonitor.interval":                    {`"31s"`, managers, "interval: 31s"},
		"metrics.podMonitor.enabled":                         {`true`, agents, "port: daemon"},
		"metrics.podMonitor.namespace":                       {`"monitoring"`, agents, "namespace: monitoring"},
		"metrics.podMonitor.labels":                          {`{"release":"prometheus"}`, agents, "release: prometheus"},
		"metrics.podMonitor.interval":                        {`"32s"`, agents, "interval: 32s"},
		"metrics.prometheusRule.enabled":                     {`true`, alerts, "alert: RegattaNoLeader"},
		"metrics.prometheusRule.namespace":                   {`"monitoring"`, alerts, "namespace: monitoring"},
		"metrics.prometheusRule.labels":                      {`{"release":"prometheus"}`, alerts, "release: prometheus"},
		"metrics.prometheusRule.without":                     {`["RegattaPanicRecovered"]`, alerts, "alert: RegattaCacheBehind"},
		"metrics.grafanaDashboards.enabled":                  {`true`, dashboard, "regatta-managers.json"},
		"metrics.grafanaDashboards.namespace":                {`"grafana"`, dashboard, "namespace: grafana"},
		"metrics.grafanaDashboards.labels.grafana_dashboard": {`"2"`, dashboard, `grafana_dashboard: "2"`},
		"metrics.grafanaDashboards.annotations":              {`{"grafana_folder":"Regatta"}`, dashboard, "grafana_folder: Regatta"},
		"metrics.prometheus.serviceAccount.name":             {`"prometheus-k8s"`, role, "name: prometheus-k8s"},
		"metrics.prometheus.serviceAccount.namespace":        {`"monitoring"`, role, "namespace: monitoring"},
	}
}

// ineffective are values that have no effect. The README marks each with a dash and says why.
func ineffective() []string {
	return []string{"daemon.windowsImage.repository", "daemon.windowsImage.tag"}
}

// Each value of values.yaml, and so each of the tables of OpenKruise's installation page,
// does something to an object of the release; or the README says that it does not.
func TestEveryValueHasAnEffect(t *testing.T) {
	rows := maps.Clone(together())
	for _, more := range []map[string]effect{apart(), tuned(), scaled(), scaledByMetrics(), unshared(), certified(), measured()} {
		maps.Copy(rows, more)
	}
	for name := range values(t) {
		if _, ok := rows[name]; !ok && !slices.Contains(ineffective(), name) {
			t.Errorf("no row says what %s does", name)
		}
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range ineffective() {
		if !strings.Contains(string(readme), "| `"+name+"` | `\"\"` | – |") {
			t.Errorf("the README does not say that %s has no effect", name)
		}
	}
	without := documents(t, nil)
	for _, group := range []map[string]effect{together(), apart(), tuned(), scaled(), scaledByMetrics(), unshared(), certified(), measured()} {
		with := documents(t, group)
		for name, e := range group {
			if e.has == absent {
				if without[e.on] == "" || with[e.on] != "" {
					t.Errorf("%s: there is %s with it: %t, without: %t", name, e.on, with[e.on] != "", without[e.on] != "")
				}
				continue
			}
			if strings.Contains(without[e.on], e.has) {
				t.Errorf("%s: %s has %q without it", name, e.on, e.has)
			}
			if !strings.Contains(with[e.on], e.has) {
				t.Errorf("%s: %s has no %q", name, e.on, e.has)
			}
		}
	}
}

// documents are the objects of the chart as text, by kind and name.
func documents(t *testing.T, set map[string]effect) map[string]string {
	t.Helper()
	args := []string{"kruise", ".", "--kube-version", kubeVersion}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		args = append(args, "--set-json", name+"="+set[name].value)
	}
	text, err := helm(t, "template", args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	out := map[string]string{}
	for document := range strings.SplitSeq(text, "\n---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		o, err := decode(document)
		if err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		out[o.GetObjectKind().GroupVersionKind().Kind+" "+o.GetName()] = document
	}
	return out
}
