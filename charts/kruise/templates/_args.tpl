{{- /* What the manager is started with, and the check before an upgrade. */ -}}
{{- define "kruise.managerArgs" -}}
{{- include "kruise.ownManagerArgs" . | trim }}
{{ include "kruise.tuningArgs" . | trim }}
{{- include "kruise.extraArgs" (dict "root" . "value" "manager.extraArgs" "args" .Values.manager.extraArgs "file" "files/manager-flags.txt" "flags" (include "kruise.managerFlags" .)) }}
{{- end }}

{{- define "kruise.ownManagerArgs" -}}
{{- include "kruise.requireOwnDefaults" . }}
{{- $manager := .Values.manager }}
{{- $logs := .Values.decisionLogs | default dict }}
{{- $file := $logs.file | default dict }}
{{- $http := $logs.http | default dict }}
{{- $ca := $http.ca | default dict }}
{{- $clientCA := .Values.webhookConfiguration.clientCA | default dict }}
- --enable-leader-election
- --leader-election-namespace={{ .Values.installation.namespace }}
- --metrics-addr=:{{ $manager.metrics.port | int }}
- --health-probe-addr=:{{ $manager.healthProbe.port | int }}
- --decisions-addr=:{{ $manager.decisions.port | int }}
{{- if include "kruise.decisionsAPI" . }}
- --decisions-api-service
{{- end }}
{{- if $manager.pprofAddr }}
- --pprof-addr={{ $manager.pprofAddr }}
{{- else }}
- --enable-pprof=false
{{- end }}
- --policy-dir=/policies
{{- range (.Values.policies | default dict).tenantHosts }}
- {{ printf "--tenant-bundle-hosts=%s" . | quote }}
{{- end }}
- --webhook-timeout-seconds={{ .Values.webhookConfiguration.timeoutSeconds | int }}
- --pod-failure-policy={{ (.Values.webhookConfiguration.failurePolicy).pods | default "Ignore" }}
{{- if or $clientCA.configMap $clientCA.secret }}
- --webhook-client-ca-file=/webhook-client-ca/ca.crt
{{- range .Values.webhookConfiguration.clientNames }}
- {{ printf "--webhook-client-names=%s" . | quote }}
{{- end }}
{{- end }}
- --sync-period={{ $manager.resyncPeriod | default "0" }}
- --v={{ $manager.log.level | int }}
{{- with $manager.loggingFormat }}
- --logging-format={{ . }}
{{- end }}
{{- with include "kruise.featureGates" . }}
- --feature-gates={{ . }}
{{- end }}
{{- if $logs.stdout }}
- --decision-log-stdout
{{- end }}
{{- with $file.path }}
- {{ printf "--decision-log-file=%s" . | quote }}
- --decision-log-file-max-size={{ $file.maxSizeMiB | int }}
- --decision-log-file-keep={{ $file.keep | int }}
{{- end }}
{{- with $http.url }}
- {{ printf "--decision-log-url=%s" . | quote }}
- --decision-log-interval={{ $http.interval | default "5s" }}
{{- range $name, $value := $http.headers }}
- {{ printf "--decision-log-header=\"%s=%s\"" $name ($value | toString | replace "\"" "\"\"") | quote }}
{{- end }}
{{- if $http.tokenSecret }}
- --decision-log-token-file=/decision-logs/token
{{- end }}
{{- if or $ca.configMap $ca.secret }}
- --decision-log-ca-file=/decision-logs-ca/ca.crt
{{- end }}
{{- end }}
{{- range $logs.mask }}
- {{ printf "--decision-log-mask=%s" . | quote }}
{{- end }}
{{- if $logs.unmasked }}
- --decision-log-unmasked
{{- end }}
{{- with $logs.points }}
- --decision-log-points={{ join "," . }}
{{- end }}
{{- end }}

{{- /* What the node agent is started with. */ -}}
{{- define "kruise.ownDaemonArgs" -}}
{{- $daemon := .Values.daemon }}
- --v={{ $daemon.log.level | int }}
- --addr=:{{ $daemon.port | int }}
- --enable-pprof={{ $daemon.enablePprof }}
{{- with $daemon.pprofAddr }}
- --pprof-addr={{ . }}
{{- end }}
{{- with $daemon.socketFile }}
- {{ printf "--socket-file=%s" . | quote }}
{{- end }}
{{- with include "kruise.featureGates" . }}
- --feature-gates={{ . }}
{{- end }}
{{- include "kruise.kubeAPIArgs" $daemon }}
{{- with $daemon.pullWorkers | int }}
- --max-workers-for-pull-image={{ . }}
{{- end }}
{{- end }}
