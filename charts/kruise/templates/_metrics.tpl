{{- /* Fails where {root, value} needs the Prometheus operator and the cluster has not got it. Helm knows the APIs of the cluster if it asked
       it, or was told them by --api-versions. All clusters serve APIServices, which Helm does not take for granted otherwise. */ -}}
{{- define "kruise.requirePrometheusOperator" -}}
{{- $apis := .root.Capabilities.APIVersions }}
{{- if and ($apis.Has "apiregistration.k8s.io/v1") (not ($apis.Has "monitoring.coreos.com/v1")) }}{{ fail (printf "%s needs the Prometheus operator, and the cluster has no API monitoring.coreos.com/v1; install the CRDs of the operator first" .value) }}{{ end }}
{{- end }}

{{- /* The metadata of an object for Prometheus or Grafana, of {root, name, namespace, values}. */ -}}
{{- define "kruise.metricsMetadata" -}}
name: {{ .name }}
namespace: {{ .values.namespace | default .namespace }}
labels:
  {{- include "kruise.labels" .root | nindent 2 }}
  {{- with .values.labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- /* How a port is scraped, of {values, port}. Metrics have labels such as namespace themselves, which stay as they are. */ -}}
{{- define "kruise.scrapedPort" -}}
- port: {{ .port }}
  path: /metrics
  scheme: http
  honorLabels: true
  {{- with .values.interval }}
  interval: {{ . }}
  {{- end }}
  relabelings:
    - sourceLabels: [__meta_kubernetes_pod_node_name]
      targetLabel: node
{{- end }}
