{{- /* Labels of pods: nothing that changes without a need to roll them. */ -}}
{{- define "kruise.podLabels" -}}
app.kubernetes.io/name: kruise
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* Labels of everything, beside those that others select by. */ -}}
{{- define "kruise.labels" -}}
{{ include "kruise.podLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* The first of a list of {repository, tag} that says something, for either. */ -}}
{{- define "kruise.image" -}}
{{- $repository := "" }}{{ $tag := "" }}
{{- range . }}
{{- $image := . | default dict }}
{{- $repository = $repository | default $image.repository }}
{{- $tag = $tag | default $image.tag }}
{{- end }}
{{- printf "%s%s%s" $repository (ternary "@" ":" (hasPrefix "sha256:" $tag)) $tag }}
{{- end }}

{{- define "kruise.managerImage" -}}
{{- include "kruise.image" (list .Values.manager.image (dict "repository" "openkruise/kruise-manager" "tag" .Chart.AppVersion)) }}
{{- end }}

{{- define "kruise.imagePullSecrets" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* "true" if another tool makes the certificates: the gate must be named,
       AllAlpha does not count. */ -}}
{{- define "kruise.externalCerts" -}}
{{- $external := "" }}
{{- range splitList "," (.Values.featureGates | default "") }}
{{- $pair := splitList "=" (trim .) }}
{{- if eq (first $pair) "EnableExternalCerts" }}{{ $external = ternary "true" "" (eq (last $pair) "true") }}{{ end }}
{{- end }}
{{- $external }}
{{- end }}

{{- /* The gates for the manager. AllAlpha=true, which the installation page
       tells people to set, would also turn on EnableExternalCerts, and the
       manager would wait for certificates that nobody makes. */ -}}
{{- define "kruise.featureGates" -}}
{{- $gates := .Values.featureGates | default "" | replace " " "" }}
{{- if and (has "AllAlpha=true" (splitList "," $gates)) (not (contains "EnableExternalCerts=" $gates)) }}
{{- $gates = printf "%s,EnableExternalCerts=false" $gates }}
{{- end }}
{{- $gates }}
{{- end }}

{{- /* Where the API server finds a path of the manager. There is never a
       caBundle: the manager, or a tool such as cert-manager, sets it, and an
       upgrade leaves alone what the chart never said. */ -}}
{{- define "kruise.clientConfig" -}}
{{- with .root.Values.webhookConfiguration.url -}}
url: {{ printf "%s%s" (trimSuffix "/" .) $.path | quote }}
{{- else -}}
service:
  name: kruise-webhook-service
  namespace: {{ .root.Values.installation.namespace }}
  path: {{ .path }}
  port: 443
{{- end }}
{{- end }}

{{- /* What webhooks have in common. */ -}}
{{- define "kruise.webhook" -}}
admissionReviewVersions: [v1, v1beta1]
sideEffects: None
timeoutSeconds: {{ .root.Values.webhookConfiguration.timeoutSeconds | int }}
clientConfig:
  {{- include "kruise.clientConfig" . | nindent 2 }}
{{- end }}

{{- /* The names of the CRDs that convert, as a YAML list. */ -}}
{{- define "kruise.convertingCRDs" -}}
{{- range $path, $_ := .Files.Glob "files/crds/*.yaml" }}
{{- $crd := $.Files.Get $path | fromYaml }}
{{- if gt (len $crd.spec.versions) 1 }}
- {{ $crd.metadata.name }}
{{- end }}
{{- end }}
{{- end }}

{{- /* What Pod Security "restricted" asks of a pod and of a container. */ -}}
{{- define "kruise.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65534
runAsGroup: 65534
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "kruise.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
