{{- /* More arguments of a program, of {root, value, args, file, flags}: flags are those that values are for, as a YAML map. A flag
       that the program does not know would end it when it starts, and one that comes from a value too would
       silently win or lose. */ -}}
{{- define "kruise.extraArgs" -}}
{{- $known := splitList "\n" (.root.Files.Get .file | trim) }}
{{- $values := .flags | fromYaml }}
{{- $seen := dict }}
{{- range $arg := .args }}
{{- $name := regexFind "^--[a-z0-9][-a-z0-9]*" $arg | trimPrefix "--" }}
{{- if not (regexMatch "^--[a-z0-9][-a-z0-9]*(=|$)" $arg) }}{{ fail (printf "%s: %q is not of the form --flag=value" $.value $arg) }}{{ end }}
{{- if not (has $name $known) }}{{ fail (printf "%s: there is no flag --%s" $.value $name) }}{{ end }}
{{- $from := get $values $name }}
{{- if eq $from "fixed" }}{{ fail (printf "%s: --%s is given by the chart, which goes by it" $.value $name) }}{{ end }}
{{- if $from }}{{ fail (printf "%s: --%s comes from %s; set that" $.value $name $from) }}{{ end }}
{{- if hasKey $seen $name }}{{ fail (printf "%s: --%s is there twice" $.value $name) }}{{ end }}
{{- $_ := set $seen $name true }}
- {{ $arg | quote }}
{{- end }}
{{- end }}

{{- /* Fields of a pod that are there only if a value says something, of the values of a program. */ -}}
{{- define "kruise.podOptions" -}}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
