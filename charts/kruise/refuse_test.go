// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"strings"
	"testing"
)

// What is refused is refused before anything is installed, by a message that
// names the value.
func TestRefusedValues(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"a key that does not exist", []string{"--set", "featureGate=A=true"}, "additional properties 'featureGate' not allowed"},
		{"a key below that does not exist", []string{"--set", "manager.replica=3"}, "at '/manager': additional properties 'replica' not allowed"},
		{"a key of the node agent that does not exist", []string{"--set", "daemon.sockLocation=/run/k3s"}, "at '/daemon': additional properties 'sockLocation'"},
		{"the image of OpenKruise, as its documents name it", []string{"--set", "manager.image.repository=openkruise-registry.cn-hangzhou.cr.aliyuncs.com/openkruise/kruise-manager"},
			"manager.image.repository: openkruise-registry.cn-hangzhou.cr.aliyuncs.com/openkruise/kruise-manager is an image of OpenKruise"},
		{"the image of OpenKruise's agent", []string{"--set", "daemon.image.repository=openkruise/kruise-daemon"}, "leave it empty for ghcr.io/regatta-sh/regatta"},
		{"the image of OpenKruise's hook", []string{"--set", "helmHooks.image.repository=openkruise/kruise-helm-hook,image.registry=mirror.example.com"}, "leave it empty for mirror.example.com/regatta-sh/regatta"},
		{"the defaults of another chart, as --reuse-values keeps them", []string{"--set", "manager.decisions=null,image=null"}, "upgrade with --reset-then-reuse-values instead"},
		{"a flag that the manager does not know", []string{"--set", "manager.extraArgs={--qps=100}"}, "manager.extraArgs: there is no flag --qps"},
		{"a flag that a value is for", []string{"--set", "manager.extraArgs={--v=6}"}, "manager.extraArgs: --v comes from manager.log.level; set that"},
		{"a flag that a value is for, which is empty", []string{"--set", "manager.extraArgs={--feature-gates=KruiseDaemon=false}"}, "manager.extraArgs: --feature-gates comes from featureGates; set that"},
		{"a flag of workers", []string{"--set", "manager.extraArgs={--crr-workers=6}"}, "manager.extraArgs: --crr-workers comes from manager.workers.containerRecreateRequest; set that"},
		{"a flag that the chart goes by", []string{"--set", "manager.extraArgs={--policy-dir=/tmp}"}, "manager.extraArgs: --policy-dir is given by the chart, which goes by it"},
		{"workers of a kind that has none", []string{"--set", "manager.workers.clonesets=6"}, "at '/manager/workers': additional properties 'clonesets' not allowed"},
		{"no workers", []string{"--set", "manager.workers.cloneSet=0"}, "at '/manager/workers/cloneSet'"},
		{"requests below zero", []string{"--set", "manager.kubeAPI.qps=-1"}, "at '/manager/kubeAPI/qps'"},
		{"a lease that ends before the leader does", []string{"--set", "manager.leaderElection.leaseDuration=10s"}, "manager.leaderElection.leaseDuration is 10s, want 1s or more, and more than manager.leaderElection.renewDeadline, which is 10s"},
		{"a leader that ends before it tries again", []string{"--set", "manager.leaderElection.retryPeriod=8500ms"}, "manager.leaderElection.renewDeadline is 10s, want more than 1.2 times manager.leaderElection.retryPeriod, which is 8500ms"},
		{"replicas that never wait", []string{"--set", "manager.leaderElection.retryPeriod=0s"}, "manager.leaderElection.retryPeriod is 0s, want more than 0"},
		{"a flag that the agent does not know", []string{"--set", "daemon.extraArgs={--leader-election-id=a}"}, "daemon.extraArgs: there is no flag --leader-election-id"},
		{"a precedence behind that of all service accounts", []string{"--set", "flowControl.matchingPrecedence=9000"}, "at '/flowControl/matchingPrecedence'"},
		{"a precedence behind that of kube-system", []string{"--set", "flowControl.matchingPrecedence=900,installation.namespace=kube-system"}, "flowControl.matchingPrecedence is 900: Kubernetes' own FlowSchema kube-system-service-accounts"},
		{"scaling a manager that is elsewhere", []string{"--set", "manager.autoscaling.enabled=true,manager.replicas=0"}, "manager.autoscaling.enabled is for managers in the cluster, and manager.replicas is 0"},
		{"scaling from more to less", []string{"--set", "manager.autoscaling.enabled=true,manager.autoscaling.minReplicas=7"}, "manager.autoscaling.maxReplicas is 6, less than manager.autoscaling.minReplicas, which is 7"},
		{"scaling by what is not measured", []string{"--set", "manager.autoscaling.enabled=true,manager.resources=null"}, "manager.autoscaling.targetCPUUtilizationPercentage is a part of manager.resources.requests.cpu, which is not set"},
		{"cert-manager on a cluster without it", []string{"--set", "externalCerts.certManager.enabled=true"}, "externalCerts.certManager.enabled needs cert-manager, and the cluster has no API cert-manager.io/v1"},
		{"cert-manager without its gate", certManaged("featureGates=EnableExternalCerts=false"), "externalCerts.certManager.enabled needs the gate EnableExternalCerts, and featureGates turns it off"},
		{"the CA of another certificate", certManaged(`externalCerts.annotations.cert-manager\.io/inject-ca-from=a/b`), "externalCerts.annotations: cert-manager.io/inject-ca-from is a/b, and externalCerts.certManager.enabled has the CA come from kruise-system/kruise-webhook-certs"},
		{"an issuer without a name", certManaged("externalCerts.certManager.issuerRef.kind=ClusterIssuer"), "externalCerts.certManager.issuerRef.name is empty"},
		{"a certificate that is renewed after its end", certManaged("externalCerts.certManager.renewBefore=2160h"), "externalCerts.certManager.renewBefore is 2160h, want 5m or more, and less than externalCerts.certManager.duration, which is 2160h"},
		{"a certificate that ends at once", certManaged("externalCerts.certManager.duration=59m"), "externalCerts.certManager.duration is 59m, want 1h or more"},
		{"a label that pods are found by", []string{"--set", "manager.podLabels.control-plane=mine"}, "manager.podLabels: the chart gives the label control-plane itself, which pods are found by"},
		{"a label of the agent that the chart gives", []string{"--set-json", `daemon.podLabels={"app.kubernetes.io/name":"agent"}`}, "daemon.podLabels: the chart gives the label app.kubernetes.io/name itself"},
		{"a variable that the chart gives", []string{"--set", "manager.extraEnv[0].name=POD_NAME,manager.extraEnv[0].value=a"}, "manager.extraEnv: the chart gives the variable POD_NAME itself"},
		{"a variable that a value is for", []string{"--set", "manager.extraEnv[0].name=WEBHOOK_HOST,manager.extraEnv[0].value=a"}, "manager.extraEnv: the chart gives the variable WEBHOOK_HOST itself, from webhookConfiguration.url; set that"},
		{"a variable of the agent that the chart gives", []string{"--set", "daemon.extraEnvs[0].name=NODE_NAME,daemon.extraEnvs[0].value=a"}, "daemon.extraEnvs: the chart gives the variable NODE_NAME itself"},
		{"a variable twice", []string{"--set", "daemon.extraEnvs[0].name=A,daemon.extraEnvs[0].value=a,daemon.extraEnvs[1].name=A"}, "daemon.extraEnvs: the variable A is there twice"},
		{"more CPU than its limit", []string{"--set", "manager.resources.requests.cpu=0.5"}, "manager.resources.requests.cpu is 0.5, more than manager.resources.limits.cpu, which is 200m"},
		{"more memory than its limit", []string{"--set", "daemon.resources.requests.memory=1Gi"}, "daemon.resources.requests.memory is 1Gi, more than daemon.resources.limits.memory, which is 128Mi"},
		{"profiles on the port of metrics", []string{"--set", "manager.metrics.port=8090"}, "manager.metrics.port and the port of manager.pprofAddr are both 8090"},
		{"profiles of the agent on its port", []string{"--set", "daemon.port=10222"}, "daemon.port and the port of daemon.pprofAddr are both 10222"},
		{"an argument that is no flag", []string{"--set", "manager.extraArgs={uninstall-check}"}, `manager.extraArgs: "uninstall-check" is not of the form --flag=value`},
		{"a pull policy that does not exist", []string{"--set", "manager.imagePullPolicy=Sometimes"}, "at '/manager/imagePullPolicy'"},
		{"an image with its tag, which would get another one", []string{"--set", "manager.image.repository=registry.example.com:5000/a/b:v1"}, "at '/manager/image/repository'"},
		{"an image with its digest", []string{"--set", "daemon.image.repository=a/b@sha256:0123"}, "at '/daemon/image/repository'"},
		{"an image by its URL", []string{"--set", "helmHooks.image.repository=https://registry.example.com/a"}, "at '/helmHooks/image/repository'"},
		{"a flag twice", []string{"--set", "manager.extraArgs={--expectation-timeout=1m,--expectation-timeout=2m}"}, "manager.extraArgs: --expectation-timeout is there twice"},
		{"a port of the node that the agent has", []string{"--set", "manager.hostNetwork=true,manager.webhook.port=10221"}, "manager.webhook.port and daemon.port are both 10221, and with manager.hostNetwork both are ports of a node"},
		{"a port of the node that profiles of the agent have", []string{"--set", "manager.hostNetwork=true,manager.metrics.port=10222"}, "manager.metrics.port and the port of daemon.pprofAddr are both 10222"},
		{"a mirror by its URL", []string{"--set", "image.registry=https://mirror.example.com"}, "at '/image/registry'"},
		{"feature gates without values", []string{"--set", "featureGates=PodWebhook"}, "at '/featureGates'"},
		{"feature gates whose comma was not escaped", []string{"--set", "featureGates=A=true,B=false"}, "additional properties 'B' not allowed"},
		{"feature gates with other values", []string{"--set", "featureGates=PodWebhook=off"}, "at '/featureGates'"},
		{"feature gates as a map", []string{"--set", "featureGates.PodWebhook=true"}, "at '/featureGates': got object, want string"},
		{"a format of logs that does not exist", []string{"--set", "manager.loggingFormat=xml"}, "at '/manager/loggingFormat': value must be one of '', 'text', 'json'"},
		{"a log level in words", []string{"--set", "manager.log.level=debug"}, "at '/manager/log/level'"},
		{"a port out of range", []string{"--set", "manager.webhook.port=99999"}, "at '/manager/webhook/port'"},
		{"a port out of range, as a string", []string{"--set-string", "manager.metrics.port=65536"}, "at '/manager/metrics/port'"},
		{"a monitor on a cluster without the operator", []string{"--api-versions", "apiregistration.k8s.io/v1", "--set", "metrics.serviceMonitor.enabled=true"}, "metrics.serviceMonitor.enabled needs the Prometheus operator, and the cluster has no API monitoring.coreos.com/v1"},
		{"a monitor of agents on a cluster without the operator", []string{"--api-versions", "apiregistration.k8s.io/v1", "--set", "metrics.podMonitor.enabled=true"}, "metrics.podMonitor.enabled needs the Prometheus operator"},
		{"alerts on a cluster without the operator", []string{"--api-versions", "apiregistration.k8s.io/v1", "--set", "metrics.prometheusRule.enabled=true"}, "metrics.prometheusRule.enabled needs the Prometheus operator"},
		{"a monitor of managers that are elsewhere", []string{"--set", "metrics.serviceMonitor.enabled=true,manager.replicas=0"}, "metrics.serviceMonitor.enabled is for managers in the cluster, and manager.replicas is 0"},
		{"a monitor of agents that do not run", []string{"--set", "metrics.podMonitor.enabled=true,featureGates=KruiseDaemon=false"}, "metrics.podMonitor.enabled is for node agents, and featureGates turns KruiseDaemon off"},
		{"an alert that does not exist", []string{"--set", "metrics.prometheusRule.enabled=true,metrics.prometheusRule.without={RegattaIsFine}"}, "metrics.prometheusRule.without: there is no alert RegattaIsFine"},
		{"an interval without a unit", []string{"--set", "metrics.serviceMonitor.interval=30"}, "at '/metrics/serviceMonitor/interval'"},
		{"a Prometheus without its namespace", []string{"--set", "metrics.serviceMonitor.enabled=true,metrics.prometheus.serviceAccount.name=prometheus-k8s"}, "metrics.prometheus.serviceAccount: name and namespace are set together"},
		{"a Prometheus that scrapes nothing", []string{"--set", "metrics.prometheus.serviceAccount.name=prometheus-k8s,metrics.prometheus.serviceAccount.namespace=monitoring"}, "metrics.prometheus.serviceAccount is for metrics.serviceMonitor.enabled and metrics.podMonitor.enabled, and both are false"},
		{"a token for no server", []string{"--set", "decisionLogs.http.tokenSecret=x"}, "decisionLogs.http.url, which is empty"},
		{"a CA for no server", []string{"--set", "decisionLogs.http.ca.configMap=x"}, "decisionLogs.http.ca is for an https:// decisionLogs.http.url"},
		{"a CA for what is not encrypted", []string{"--set", "decisionLogs.http.ca.secret=x,decisionLogs.http.url=http://logs.example.com"}, "decisionLogs.http.ca is for an https:// decisionLogs.http.url"},
		{"two CAs", []string{"--set", "decisionLogs.http.ca.secret=x,decisionLogs.http.ca.configMap=y,decisionLogs.http.url=https://logs.example.com"}, "decisionLogs.http.ca.configMap and decisionLogs.http.ca.secret are both set"},
		{"masks that do not mask", []string{"--set", "decisionLogs.unmasked=true,decisionLogs.mask={/input/x}"}, "decisionLogs.mask and decisionLogs.unmasked are both set"},
		{"a decision point that does not exist", []string{"--set", "decisionLogs.points={rollout/nope}"}, "at '/decisionLogs/points/0': value must be one of 'protection/budget'"},
		{"two listeners on one port", []string{"--set", "manager.decisions.port=8080"}, "manager.metrics.port and manager.decisions.port are both 8080"},
		{"replicas below zero", []string{"--set", "manager.replicas=-1"}, "at '/manager/replicas'"},
		{"a period that is no duration", []string{"--set", "manager.resyncPeriod=often"}, "at '/manager/resyncPeriod'"},
		{"a quantity that is none", []string{"--set", "manager.resources.limits.memory=512MB"}, "at '/manager/resources/limits/memory'"},
		{"a switch that is a string", []string{"--set-string", "manager.hostNetwork=true"}, "at '/manager/hostNetwork': got string, want boolean"},
		{"a pull secret as a string", []string{"--set", "imagePullSecrets[0]=registry"}, "at '/imagePullSecrets/0'"},
		{"true for pull secrets", []string{"--set", "imagePullSecrets=true"}, "at '/imagePullSecrets'"},
		{"a tag that YAML reads as a number", []string{"--set", "manager.image.tag=20260101"}, "at '/manager/image/tag': got number, want string"},
		{"tolerations that are no list", []string{"--set", "manager.tolerations.operator=Exists"}, "at '/manager/tolerations': got object, want array"},
		{"a selector with values that are no strings", []string{"--set", "manager.nodeSelector.gpu=true"}, "at '/manager/nodeSelector/gpu': got boolean, want string"},
		{"pod affinity where node affinity goes", []string{"--set", "manager.nodeAffinity.podAffinity.x=1"}, "at '/manager/nodeAffinity'"},
		{"a group that is none", []string{"--set", "installation.roleListGroups={Apps!}"}, "at '/installation/roleListGroups/0'"},
		{"a timeout that the API server refuses", []string{"--set", "webhookConfiguration.timeoutSeconds=31"}, "at '/webhookConfiguration/timeoutSeconds'"},
		{"a failure policy that does not exist", []string{"--set", "webhookConfiguration.failurePolicy.pods=Never"}, "at '/webhookConfiguration/failurePolicy/pods': value must be one of 'Ignore', 'Fail'"},
		{"a URL without TLS", []string{"--set", "webhookConfiguration.url=http://localhost:9443"}, "at '/webhookConfiguration/url'"},
		{"an address, for which the manager makes no certificate", []string{"--set-json", `webhookConfiguration.url="https://[fd00::7]:9443"`}, "webhookConfiguration.url has the address fd00::7, and the manager makes certificates for names"},
		{"a namespace that is no name", []string{"--set", "installation.namespace=Kruise_System"}, "at '/installation/namespace'"},
		{"two CAs of the API server", []string{"--set", "webhookConfiguration.clientCA.secret=x,webhookConfiguration.clientCA.configMap=y"}, "webhookConfiguration.clientCA.configMap and webhookConfiguration.clientCA.secret are both set"},
		{"names of clients that are not verified", []string{"--set", "webhookConfiguration.clientNames={a}"}, "webhookConfiguration.clientNames is for webhookConfiguration.clientCA, which is empty"},
		{"a network policy without sources, which would let all in", []string{"--set", "networkPolicy.enabled=true"}, "networkPolicy.apiServers is empty"},
		{"a source that selects everything", []string{"--set", "networkPolicy.enabled=true", "--set-json", `networkPolicy.apiServers=[{}]`}, "at '/networkPolicy/apiServers/0'"},
		{"a source that is an address without a mask", []string{"--set", "networkPolicy.enabled=true", "--set-json", `networkPolicy.apiServers=[{"ipBlock":{"cidr":"10.0.0.10"}}]`}, "at '/networkPolicy/apiServers/0/ipBlock/cidr'"},
		{"the user root", []string{"--set", "manager.runAsUser=0"}, "/manager/runAsUser"},
		{"a family policy that does not exist", []string{"--set", "service.ipFamilyPolicy=Dual"}, "/service/ipFamilyPolicy"},
		{"agents beside pull secrets", []string{"--set", "daemon.namespace=kruise-daemon-config"}, "daemon.namespace: kruise-daemon-config is for pull secrets"},
		{"a network policy for the network of the node", append([]string{"--set", "manager.hostNetwork=true"}, restricted()...), "networkPolicy.enabled has no effect with manager.hostNetwork"},
		{"annotations as a string", []string{"--set", "externalCerts.annotations=x"}, "at '/externalCerts/annotations'"},
		{"a socket directory that is relative", []string{"--set", "daemon.socketLocation=run/k3s"}, "at '/daemon/socketLocation'"},
		{"a credential provider that is neither on nor off", []string{"--set", "daemon.credentialProvider.enable=yes"}, "at '/daemon/credentialProvider/enable'"},
		{"a section that is needed, emptied", []string{"--set", "webhookConfiguration=null"}, "missing property 'webhookConfiguration'"},
		{"a Kubernetes that is too old", []string{"--kube-version", "1.29.0"}, "chart requires kubeVersion: >= 1.30.0-0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			output, err := helm(t, "template", append([]string{"kruise", ".", "--kube-version", kubeVersion}, tc.args...)...)
			if err == nil {
				t.Fatal("it rendered")
			}
			if !strings.Contains(output, tc.want) {
				t.Errorf("the message is\n%s\nwant it to say\n%s", output, tc.want)
			}
		})
	}
}

// certManaged are arguments with certificates of cert-manager and another value.
func certManaged(set string) []string {
	return []string{"--api-versions", "cert-manager.io/v1", "--set", "externalCerts.certManager.enabled=true", "--set", set}
}
