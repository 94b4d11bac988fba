{{- /* Fails where a {value, env, own} has a variable twice, or one that the chart gives: own has the value that it comes from. */ -}}
{{- define "kruise.refuseEnv" -}}
{{- $seen := dict }}
{{- range $variable := .env }}
{{- $name := $variable.name }}
{{- if hasKey $.own $name }}
{{- $from := get $.own $name }}
{{- fail (printf "%s: the chart gives the variable %s itself%s" $.value $name (ternary (printf ", from %s; set that" $from) "" (ne $from ""))) }}
{{- end }}
{{- if hasKey $seen $name }}{{ fail (printf "%s: the variable %s is there twice" $.value $name) }}{{ end }}
{{- $_ := set $seen $name true }}
{{- end }}
{{- end }}

{{- /* Fails where {value, resources} asks for more than its limit. */ -}}
{{- define "kruise.refuseResources" -}}
{{- $limits := (.resources | default dict).limits | default dict }}
{{- range $name, $asked := (.resources | default dict).requests | default dict }}
{{- $limit := get $limits $name }}
{{- if and (hasKey $limits $name) (not (kindIs "invalid" $limit)) (not (kindIs "invalid" $asked)) }}
{{- if gt (include "kruise.quantity" $asked | float64) (include "kruise.quantity" $limit | float64) }}{{ fail (printf "%s.requests.%s is %v, more than %s.limits.%s, which is %v" $.value $name $asked $.value $name $limit) }}{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* A quantity such as 200m or 1Gi as a number. */ -}}
{{- define "kruise.quantity" -}}
{{- $text := toString . }}
{{- $unit := regexFind "[A-Za-z]+$" $text }}
{{- $factors := dict "" 1.0 "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 "Pi" 1125899906842624.0 "Ei" 1152921504606846976.0 }}
{{- mulf (trimSuffix $unit $text | float64) (get $factors $unit) }}
{{- end }}
