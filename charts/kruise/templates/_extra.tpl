{{- /* More arguments of a program, of {root, value, args, file, own}: own are those that the chart gives it, as text. A flag
       that the program does not know would end it when it starts, and one that the chart gives too would
       silently win or lose. */ -}}
{{- define "kruise.extraArgs" -}}
{{- $known := splitList "\n" (.root.Files.Get .file | trim) }}
{{- range $arg := .args }}
{{- $name := regexFind "^--[a-z0-9][-a-z0-9]*" $arg | trimPrefix "--" }}
{{- if not (regexMatch "^--[a-z0-9][-a-z0-9]*(=|$)" $arg) }}{{ fail (printf "%s: %q is not of the form --flag=value" $.value $arg) }}{{ end }}
{{- if not (has $name $known) }}{{ fail (printf "%s: there is no flag --%s" $.value $name) }}{{ end }}
{{- if regexMatch (printf "(?m)^- \"?--%s(=|\"|$)" $name) $.own }}{{ fail (printf "%s: the chart gives --%s already; set the value that it comes from" $.value $name) }}{{ end }}
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
