{{- /* Annotations of an object that lives as long as a hook: when it runs, and its place among the others. */ -}}
{{- define "kruise.hook" -}}
helm.sh/hook: {{ first . }}
helm.sh/hook-weight: {{ last . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{- /* The name of the Job of a hook. It is a label of its pod, so it has no more than 63 characters; Helm lets a release have 53. */ -}}
{{- define "kruise.hookName" -}}
{{- printf "%s-%s" (trunc (sub 62 (len .name) | int) .root.Release.Name | trimSuffix "-" | trimSuffix ".") .name }}
{{- end }}

{{- /* The spec of a Job that runs the program of an image once, or another command of it. */ -}}
{{- define "kruise.hookJob" -}}
{{- $root := .root }}
backoffLimit: 0
# Less than the five minutes that Helm waits, so that the reason is seen when
# the pod does not start.
activeDeadlineSeconds: 240
template:
  metadata:
    labels:
      {{- include "kruise.podLabels" $root | nindent 6 }}
  spec:
    restartPolicy: Never
    serviceAccountName: {{ .account }}
    automountServiceAccountToken: true
    {{- with include "kruise.imagePullSecrets" $root }}
    {{- . | trim | nindent 4 }}
    {{- end }}
    securityContext:
      {{- include "kruise.podSecurity" $root | nindent 6 }}
    containers:
      - name: {{ .name }}
        image: {{ .image | quote }}
        {{- with $root.Values.manager.imagePullPolicy }}
        imagePullPolicy: {{ . }}
        {{- end }}
        {{- with .command }}
        command: [{{ . }}]
        {{- end }}
        args:
          {{- .args | trim | nindent 10 }}
        {{- with .env }}
        env:
          {{- . | trim | nindent 10 }}
        {{- end }}
        resources:
          limits:
            cpu: 200m
            memory: 128Mi
          requests:
            cpu: 50m
            memory: 64Mi
        securityContext:
          {{- include "kruise.containerSecurity" $root | nindent 10 }}
    {{- with $root.Values.manager.nodeSelector }}
    nodeSelector:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with $root.Values.manager.tolerations }}
    tolerations:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with $root.Values.manager.nodeAffinity }}
    affinity:
      nodeAffinity:
        {{- toYaml . | nindent 8 }}
    {{- end }}
{{- end }}
