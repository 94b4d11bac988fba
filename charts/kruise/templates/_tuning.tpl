{{- /* A duration such as 1h30m in milliseconds. */ -}}
{{- define "kruise.milliseconds" -}}
{{- $sum := 0.0 }}
{{- range regexFindAll "[0-9]+([.][0-9]+)?(ms|s|m|h)" (toString .) -1 }}
{{- $unit := regexFind "[a-z]+$" . }}
{{- $sum = addf $sum (mulf (trimSuffix $unit . | float64) (get (dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000) $unit)) }}
{{- end }}
{{- $sum | int64 }}
{{- end }}

{{- /* How fast the manager works, and how soon another replica takes over. What a values file leaves out is the manager's own
       default. */ -}}
{{- define "kruise.tuningArgs" -}}
{{- $manager := .Values.manager }}
{{- $election := $manager.leaderElection | default dict }}
{{- $lease := $election.leaseDuration | default "15s" }}
{{- $renew := $election.renewDeadline | default "10s" }}
{{- $retry := $election.retryPeriod | default "2s" }}
{{- $ms := dict }}
{{- range $name, $value := dict "lease" $lease "renew" $renew "retry" $retry }}
{{- $_ := set $ms $name (include "kruise.milliseconds" $value | int64) }}
{{- end }}
{{- if lt $ms.retry 1 }}{{ fail (printf "manager.leaderElection.retryPeriod is %v, want more than 0" $retry) }}{{ end }}
{{- if le (mul $ms.renew 5) (mul $ms.retry 6) }}{{ fail (printf "manager.leaderElection.renewDeadline is %v, want more than 1.2 times manager.leaderElection.retryPeriod, which is %v" $renew $retry) }}{{ end }}
{{- if or (le $ms.lease $ms.renew) (lt $ms.lease 1000) }}{{ fail (printf "manager.leaderElection.leaseDuration is %v, want 1s or more, and more than manager.leaderElection.renewDeadline, which is %v" $lease $renew) }}{{ end }}
- --leader-election-lease-duration={{ $lease }}
- --leader-election-renew-deadline={{ $renew }}
- --leader-election-retry-period={{ $retry }}
{{- include "kruise.kubeAPIArgs" $manager }}
{{- range $controller, $workers := $manager.workers }}
{{- if not (kindIs "invalid" $workers) }}
- --{{ ternary "crr" (lower $controller) (eq $controller "containerRecreateRequest") }}-workers={{ $workers | int }}
{{- end }}
{{- end }}
{{- end }}

{{- /* How many requests of a program, whose values are given, the API server gets. */ -}}
{{- define "kruise.kubeAPIArgs" -}}
{{- $api := .kubeAPI | default dict }}
{{- if gt ($api.qps | float64) 0.0 }}
- --rest-config-qps={{ $api.qps }}
{{- end }}
{{- if gt ($api.burst | int) 0 }}
- --rest-config-burst={{ $api.burst | int }}
{{- end }}
{{- end }}

{{- /* The flags that values are for, and the values; of a flag that the chart goes by, "fixed". extraArgs has the
       others: a flag that comes from two places would silently have the value of one of them. */ -}}
{{- define "kruise.managerFlags" -}}{{ .Files.Get "files/manager-values.yaml" }}{{- end }}

{{- define "kruise.daemonFlags" -}}{{ .Files.Get "files/daemon-values.yaml" }}{{- end }}

{{- /* How many replicas the Deployment has. Where it is scaled that is not the chart's to say; but Helm would take away what an
       earlier release said, and the API server then go down to one replica until the autoscaler looks. So a Deployment that is
       there keeps what it has, with as many as the autoscaler starts from at least: it leaves one of none alone. */ -}}
{{- define "kruise.replicas" -}}
{{- $scaling := .Values.manager.autoscaling | default dict }}
{{- if not $scaling.enabled -}}
replicas: {{ .Values.manager.replicas | int }}
{{- else }}
{{- with lookup "apps/v1" "Deployment" .Values.installation.namespace "kruise-controller-manager" -}}
replicas: {{ max (.spec.replicas | int) ($scaling.minReplicas | default 2 | int) }}
{{- end }}
{{- end }}
{{- end }}
