{{- /* Labels of pods: nothing that changes without a need to roll them. */ -}}
{{- define "kruise.podLabels" -}}
app.kubernetes.io/name: kruise
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- /* Labels of everything, beside those that others select by. */ -}}
{{- define "kruise.labels" -}}
{{ include "kruise.podLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* Fails where the defaults are those of another chart, as --reuse-values keeps them. */ -}}
{{- define "kruise.requireOwnDefaults" -}}
{{- if not .Values.manager.decisions }}
{{- fail "manager.decisions is missing: --reuse-values keeps the defaults of the chart that was there before; upgrade with --reset-then-reuse-values instead, which keeps the values that you set" }}
{{- end }}
{{- end }}

{{- /* The image of this chart, without its tag. A mirror has it below its own name. */ -}}
{{- define "kruise.ownRepository" -}}
{{- printf "%s/regatta-sh/regatta" ((.Values.image).registry | default "ghcr.io" | trimSuffix "/") }}
{{- end }}

{{- /* The first of a list of {value, image} whose image has a repository, and the first that has a tag,
       or else those of this chart. An image of OpenKruise would be started with flags that it does not
       know, after the webhooks were replaced, so it is refused before anything is installed. */ -}}
{{- define "kruise.image" -}}
{{- $own := include "kruise.ownRepository" .root }}
{{- $repository := "" }}{{ $tag := "" }}
{{- range .images }}
{{- $image := .image | default dict }}
{{- if regexMatch "(^|/)openkruise/kruise-(manager|daemon|helm-hook)$" ($image.repository | default "") }}
{{- fail (printf "%s.repository: %s is an image of OpenKruise, which does not know the flags of this chart; leave it empty for %s, or name a mirror of that" .value $image.repository $own) }}
{{- end }}
{{- $repository = $repository | default $image.repository }}
{{- $tag = $tag | default $image.tag }}
{{- end }}
{{- /* A chart of a release has the digest of its image. A repository of one's own may have another image. */}}
{{- if not (or $repository $tag) }}{{ with .root.Chart.Annotations }}{{ $tag = index . "regatta.sh/image-digest" }}{{ end }}{{ end }}
{{- $tag = $tag | default .root.Chart.AppVersion }}
{{- printf "%s%s%s" ($repository | default $own) (ternary "@" ":" (hasPrefix "sha256:" $tag)) $tag }}
{{- end }}

{{- define "kruise.managerImage" -}}
{{- include "kruise.image" (dict "root" . "images" (list (dict "value" "manager.image" "image" .Values.manager.image))) }}
{{- end }}

{{- /* "true" if node agents run: the gate is on unless it, or all of its stage,
       is turned off. */ -}}
{{- define "kruise.daemon" -}}
{{- $gates := splitList "," (include "kruise.featureGates" .) }}
{{- $named := contains "KruiseDaemon=" (include "kruise.featureGates" .) }}
{{- if or (has "KruiseDaemon=true" $gates) (and (not $named) (not (has "AllBeta=false" $gates))) }}true{{ end }}
{{- end }}

{{- /* "true" if node agents follow pods: the gate is on unless it, all of its stage or
       the node agent is turned off. */ -}}
{{- define "kruise.daemonWatchesPods" -}}
{{- $gates := splitList "," (include "kruise.featureGates" .) }}
{{- $named := contains "DaemonWatchingPod=" (include "kruise.featureGates" .) }}
{{- if and (include "kruise.daemon" .) (or (has "DaemonWatchingPod=true" $gates) (and (not $named) (not (has "AllBeta=false" $gates)))) }}true{{ end }}
{{- end }}

{{- /* "true" if ResourceDistributions are carried out: the gate is off unless it, or
       all of its stage, is turned on. */ -}}
{{- define "kruise.distributes" -}}
{{- $gates := splitList "," (include "kruise.featureGates" .) }}
{{- $named := contains "ResourceDistributionGate=" (include "kruise.featureGates" .) }}
{{- if or (has "ResourceDistributionGate=true" $gates) (and (not $named) (has "AllBeta=true" $gates)) }}true{{ end }}
{{- end }}

{{- /* "true" if images are pulled ahead. */ -}}
{{- define "kruise.imagePullJobs" -}}
{{- $gates := splitList "," (include "kruise.featureGates" .) }}
{{- $asked := or (has "ImagePullJobGate=true" $gates) (has "PreDownloadImageForInPlaceUpdate=true" $gates) (has "PreDownloadImageForDaemonSetUpdate=true" $gates) }}
{{- if and (include "kruise.daemon" .) (or $asked (and (has "AllAlpha=true" $gates) (not (has "ImagePullJobGate=false" $gates)))) }}true{{ end }}
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
{{- $external := include "kruise.certManager" . }}
{{- range splitList "," (.Values.featureGates | default "") }}
{{- $pair := splitList "=" (trim .) }}
{{- if eq (first $pair) "EnableExternalCerts" }}{{ $external = ternary "true" "" (eq (last $pair) "true") }}{{ end }}
{{- end }}
{{- $external }}
{{- end }}

{{- /* The gates for the manager. AllAlpha=true, which the installation page
       tells people to set, would also turn on EnableExternalCerts, and the
       manager would wait for certificates that no tool makes. */ -}}
{{- define "kruise.featureGates" -}}
{{- $gates := .Values.featureGates | default "" | replace " " "" }}
{{- if and (include "kruise.certManager" .) (not (contains "EnableExternalCerts=" $gates)) }}
{{- $gates = printf "%s,EnableExternalCerts=true" $gates | trimPrefix "," }}
{{- end }}
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

{{- /* Annotations of a webhook configuration: those of users, and the one by which the admissions enforcer of AKS
       leaves it alone. */ -}}
{{- define "kruise.webhookAnnotations" -}}
{{- toYaml (merge (deepCopy (. | default dict)) (dict "admissions.enforcer/disabled" "true")) }}
{{- end }}

{{- /* What webhooks have in common. */ -}}
{{- define "kruise.webhook" -}}
admissionReviewVersions: [v1, v1beta1]
{{- /* Before a SidecarSet is written, the manager has the API server send the pods that it selects. */}}
sideEffects: {{ if eq .path "/validate-apps-kruise-io-sidecarset" }}NoneOnDryRun{{ else }}None{{ end }}
{{- /* Policies take longer to compile than other rules: 0.4 s of a processor, of which the manager has a fifth. */}}
timeoutSeconds: {{ if .again }}{{ max 10 (.root.Values.webhookConfiguration.timeoutSeconds | int) }}{{ else }}{{ .root.Values.webhookConfiguration.timeoutSeconds | int }}{{ end }}
clientConfig:
  {{- include "kruise.clientConfig" . | nindent 2 }}
{{- end }}

{{- /* A webhook that is asked about writes of one kind; again if the manager checks the objects after they are stored, too. */ -}}
{{- define "kruise.writes" -}}
{{- $names := .crd.spec.names }}
{{- $path := printf "/%s-%s-%s" .verb (.crd.spec.group | replace "." "-") $names.singular }}
- name: {{ substr 0 1 .verb }}{{ $names.singular }}.kb.io
  {{- include "kruise.webhook" (dict "root" .root "path" $path "again" .again) | nindent 2 }}
  failurePolicy: {{ if .again }}Ignore{{ else }}Fail{{ end }}
  rules:
    - apiGroups: [{{ .crd.spec.group }}]
      apiVersions:
        {{- range .crd.spec.versions }}
        - {{ .name }}
        {{- end }}
      operations: [{{ if .created }}CREATE{{ else }}CREATE, UPDATE{{ end }}]
      resources: [{{ $names.plural }}]
      scope: {{ .crd.spec.scope }}
  matchConditions:
    - name: not-being-deleted
      expression: "!has(object.metadata.deletionTimestamp)"
{{- end }}

{{- /* "true" if a CRD has versions that look different. Those that look the
       same are converted by the API server alone. */ -}}
{{- define "kruise.converts" -}}
{{- $shapes := dict }}
{{- range .spec.versions }}
{{- $_ := set $shapes (toJson (pick .schema.openAPIV3Schema.properties "spec" "status")) true }}
{{- end }}
{{- if gt (len $shapes) 1 }}true{{ end }}
{{- end }}

{{- /* Reads the CRDs into .crds of the root. Parsing them is most of the work of
       rendering, so it is done once. */ -}}
{{- define "kruise.readCRDs" -}}
{{- if not (hasKey . "crds") }}
{{- $crds := list }}
{{- range $path, $_ := .Files.Glob "files/crds/*.yaml" }}
{{- $crd := $.Files.Get $path | fromYaml }}
{{- if hasKey $crd "Error" }}{{ fail (printf "%s: %s" $path $crd.Error) }}{{ end }}
{{- $crds = append $crds $crd }}
{{- end }}
{{- $_ := set . "crds" $crds }}
{{- end }}
{{- end }}

{{- /* The names of the CRDs that convert, as a YAML list. */ -}}
{{- define "kruise.convertingCRDs" -}}
{{- include "kruise.readCRDs" . }}
{{- range $crd := .crds }}
{{- if include "kruise.converts" $crd }}
- {{ $crd.metadata.name }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The resources of a group that are not left out, as a YAML list; with a
       suffix such as /status, and of one scope if there is one. */ -}}
{{- define "kruise.resources" -}}
{{- include "kruise.readCRDs" .root }}
{{- range $crd := .root.crds }}
{{- if and (eq $crd.spec.group $.group) (not (has $crd.spec.names.plural ($.without | default list))) (or (not $.scope) (eq $.scope $crd.spec.scope)) }}
- {{ $crd.spec.names.plural }}{{ $.suffix | default "" }}
{{- end }}
{{- end }}
{{- end }}

{{- /* What Pod Security "restricted" asks of a pod and of a container. */ -}}
{{- define "kruise.podSecurity" -}}
runAsNonRoot: true
{{- $user := .Values.manager.runAsUser | default (ternary "" 65534 (eq (include "kruise.openshift" .) "true")) }}
{{- with $user }}
runAsUser: {{ . | int64 }}
runAsGroup: {{ . | int64 }}
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "kruise.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- /* "true" if the cluster gives users to pods and confines them by SecurityContextConstraints. */ -}}
{{- define "kruise.openshift" -}}
{{- $on := "auto" }}
{{- with .Values.openshift }}{{ if not (kindIs "invalid" .enabled) }}{{ $on = .enabled | toString }}{{ end }}{{ end }}
{{- if or (eq $on "true") (and (eq $on "auto") (.Capabilities.APIVersions.Has "security.openshift.io/v1")) }}true{{ end }}
{{- end }}

{{- /* SELinux options of the node agent. Sockets of container runtimes are closed to what containers run as. */ -}}
{{- define "kruise.daemonSELinux" -}}
{{- $options := (.Values.daemon).seLinuxOptions }}
{{- if and (not $options) (include "kruise.openshift" .) }}{{ $options = dict "type" "spc_t" }}{{ end }}
{{- with $options }}
seLinuxOptions:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* The namespace of the node agents. */ -}}
{{- define "kruise.daemonNamespace" -}}
{{- if eq ((.Values.daemon).namespace | default "") "kruise-daemon-config" }}{{ fail "daemon.namespace: kruise-daemon-config is for pull secrets, and no pod runs in it" }}{{ end }}
{{- (.Values.daemon).namespace | default .Values.installation.namespace }}
{{- end }}

{{- /* Which families of addresses a Service has. */ -}}
{{- define "kruise.ipFamilies" -}}
{{- with .Values.service }}
{{- with .ipFamilyPolicy }}
ipFamilyPolicy: {{ . }}
{{- end }}
{{- with .ipFamilies }}
ipFamilies:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The source of a volume with the CA of a {configMap, secret, key}, as ca.crt.
       It is not mounted by a subPath, so that a change is seen. */ -}}
{{- define "kruise.caVolume" -}}
{{- if .configMap -}}
configMap:
  name: {{ .configMap | quote }}
{{- else -}}
secret:
  secretName: {{ .secret | quote }}
{{- end }}
  items:
    - key: {{ .key | default "ca.crt" | quote }}
      path: ca.crt
{{- end }}

{{- /* The API groups that the manager may list, as a YAML list: those that are
       named. "*", which is OpenKruise's default, and the core group have every
       secret of the cluster. */ -}}
{{- define "kruise.listGroups" -}}
{{- $groups := list }}
{{- range .Values.installation.roleListGroups | default list }}
{{- if not (has . (list "" "*")) }}{{ $groups = append $groups . }}{{ end }}
{{- end }}
{{- if $groups }}{{ toYaml $groups }}{{ end }}
{{- end }}

{{- /* The level of the Pod Security Standards that the API server holds a namespace to. */ -}}
{{- define "kruise.podSecurityLabels" -}}
pod-security.kubernetes.io/enforce: {{ . }}
pod-security.kubernetes.io/audit: {{ . }}
pod-security.kubernetes.io/warn: {{ . }}
{{- end }}

{{/* Whether the API server passes questions on to the manager: a text, or nothing. A manager
outside of the cluster has no pods that it could pass them to, and an API without a server
keeps namespaces from being deleted. */}}
{{- define "kruise.decisionsAPI" -}}
{{- include "kruise.requireOwnDefaults" . }}
{{- $decisions := .Values.manager.decisions }}
{{- if and (ne (($decisions.apiService).enabled | toString) "false") (gt (.Values.manager.replicas | int) 0) }}true{{ end }}
{{- end }}
