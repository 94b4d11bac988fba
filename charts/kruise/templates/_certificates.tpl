{{- /* "true" if the chart has cert-manager make the certificates. */ -}}
{{- define "kruise.certManager" -}}
{{- $certs := (.Values.externalCerts).certManager | default dict }}
{{- if $certs.enabled }}
{{- if regexMatch "(^|,) *EnableExternalCerts=false" (.Values.featureGates | default "") }}{{ fail "externalCerts.certManager.enabled needs the gate EnableExternalCerts, and featureGates turns it off" }}{{ end }}
{{- $lasts := include "kruise.milliseconds" ($certs.duration | default "2160h") | int64 }}
{{- $before := include "kruise.milliseconds" ($certs.renewBefore | default "720h") | int64 }}
{{- if lt $lasts 3600000 }}{{ fail (printf "externalCerts.certManager.duration is %v, want 1h or more" $certs.duration) }}{{ end }}
{{- if or (lt $before 300000) (ge $before $lasts) }}{{ fail (printf "externalCerts.certManager.renewBefore is %v, want 5m or more, and less than externalCerts.certManager.duration, which is %v" ($certs.renewBefore | default "720h") ($certs.duration | default "2160h")) }}{{ end -}}
true
{{- end }}
{{- end }}

{{- /* Annotations of what carries the CA, which tell the tool that makes certificates where it goes, as YAML. */ -}}
{{- define "kruise.certAnnotations" -}}
{{- $annotations := (.Values.externalCerts).annotations | default dict }}
{{- if include "kruise.certManager" . }}
{{- $from := printf "%s/kruise-webhook-certs" .Values.installation.namespace }}
{{- range $name := list "cert-manager.io/inject-ca-from" "cert-manager.io/inject-ca-from-secret" "cert-manager.io/inject-apiserver-ca" }}
{{- $value := get $annotations $name }}
{{- if and $value (ne $value $from) }}{{ fail (printf "externalCerts.annotations: %s is %s, and externalCerts.certManager.enabled has the CA come from %s" $name $value $from) }}{{ end }}
{{- end }}
{{- $annotations = merge (dict "cert-manager.io/inject-ca-from" $from) $annotations }}
{{- end }}
{{- if $annotations }}{{ toYaml $annotations }}{{ end }}
{{- end }}
