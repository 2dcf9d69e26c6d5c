{{/*
Every object's name. Chart.Name is the alias where a parent chart includes this chart more than once.
*/}}
{{- define "inference-service.name" -}}
{{- printf "%s-%s" .Release.Name .Chart.Name -}}
{{- end }}

{{/* Only these two, for ever: a Deployment's selector is immutable. */}}
{{- define "inference-service.selectorLabels" -}}
app.kubernetes.io/name: {{ include "inference-service.quoted" .Chart.Name }}
app.kubernetes.io/instance: {{ include "inference-service.quoted" .Release.Name }}
{{- end }}

{{/* For the objects, not for the pods: a new chart version alone must not replace pods. */}}
{{- define "inference-service.labels" -}}
{{ include "inference-service.selectorLabels" . }}
app.kubernetes.io/managed-by: {{ include "inference-service.quoted" .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" | quote }}
{{- end }}

{{/* The image by digest: the node can pull nothing else under this reference. */}}
{{- define "inference-service.image" -}}
{{- $image := (include "inference-service.values" . | fromJson).image -}}
{{- printf "%s@%s" $image.repository (required "image.digest is required (sha256:...)" $image.digest) -}}
{{- end }}

{{/* "true" when the arguments (.args) hold the flag (.flag), as "--a-flag x", "--a-flag=x" or "--a_flag x". */}}
{{- define "inference-service.hasFlag" -}}
{{- $found := false -}}
{{- range .args -}}
  {{- if eq (splitList "=" . | first | replace "_" "-") ($.flag | replace "_" "-") -}}
    {{- $found = true -}}
  {{- end -}}
{{- end -}}
{{- if $found }}true{{ end -}}
{{- end }}

{{/* The value that the arguments (.args) give to the flag (.flag); the last one counts, as in argparse. */}}
{{- define "inference-service.flagValue" -}}
{{- $value := "" -}}
{{- $behind := false -}}
{{- range .args -}}
  {{- $parts := splitn "=" 2 . -}}
  {{- if $behind -}}
    {{- $value = . -}}
    {{- $behind = false -}}
  {{- else if eq ($parts._0 | replace "_" "-") ($.flag | replace "_" "-") -}}
    {{- $behind = not (contains "=" .) -}}
    {{- $value = $parts._1 | default "" -}}
  {{- end -}}
{{- end -}}
{{- $value -}}
{{- end }}

{{/*
The engine's arguments as a YAML list: the team's own, byte for byte, then what the chart derives.
A derived flag is left out where the team gave it, or where its name is set to "".
*/}}
{{- define "inference-service.args" -}}
{{- $engine := .engine -}}
{{- $lines := list -}}
{{- range $engine.args -}}
  {{- $lines = append $lines (include "inference-service.unexpanded" . | printf "- %s") -}}
{{- end -}}
{{- /* 8000 is where vLLM listens by itself. */ -}}
{{- if and $engine.portFlag (ne (int64 $engine.port) 8000) (not (include "inference-service.hasFlag" (dict "args" $engine.args "flag" $engine.portFlag))) -}}
  {{- $lines = append $lines (include "inference-service.unexpanded" $engine.portFlag | printf "- %s") -}}
  {{- $lines = append $lines (int64 $engine.port | printf "- \"%d\"") -}}
{{- end -}}
{{- if and $engine.shutdownTimeoutFlag (not (include "inference-service.hasFlag" (dict "args" $engine.args "flag" $engine.shutdownTimeoutFlag))) -}}
  {{- $lines = append $lines (include "inference-service.unexpanded" $engine.shutdownTimeoutFlag | printf "- %s") -}}
  {{- $lines = append $lines (include "inference-service.drainSeconds" . | printf "- \"%s\"") -}}
{{- end -}}
{{- join "\n" $lines -}}
{{- end }}

{{/*
How long the engine may go on with its streams after SIGTERM: what the grace period leaves after the
preStop sleep, less 5 s for the engine's own exit, so that it ends before it is killed.
*/}}
{{- define "inference-service.drainSeconds" -}}
{{- max 0 (sub (sub (int64 .rollout.terminationGracePeriodSeconds) (int64 .rollout.preStopSeconds)) 5) -}}
{{- end }}

{{/* A load may take loadTimeoutSeconds: probe failures before that are no failure. Rounded up. */}}
{{- define "inference-service.startupFailureThreshold" -}}
{{- $period := int64 .probes.periodSeconds -}}
{{- div (add (int64 .engine.loadTimeoutSeconds) (sub $period 1)) $period -}}
{{- end }}

{{/*
When Kubernetes may call a rollout failed: its own default of 600 s for a node and the image to arrive, then the
old pod's grace period (with maxSurge 0 the new pod waits for its accelerator), then the longest load.
*/}}
{{- define "inference-service.progressDeadlineSeconds" -}}
{{- add 600 (int64 .rollout.terminationGracePeriodSeconds) (int64 .engine.loadTimeoutSeconds) -}}
{{- end }}

{{/* The part that all three probes share. */}}
{{- define "inference-service.probe" -}}
httpGet:
  path: {{ include "inference-service.quoted" .path }}
  port: http
periodSeconds: {{ int64 .periodSeconds }}
timeoutSeconds: {{ int64 .timeoutSeconds }}
{{- end }}

{{/* The pods' annotations: the user's own win over those for Prometheus. */}}
{{- define "inference-service.podAnnotations" -}}
{{- $annotations := dict -}}
{{- if .metrics.annotations -}}
  {{- $annotations = dict "prometheus.io/scrape" "true" "prometheus.io/port" (int64 .engine.port | toString) "prometheus.io/path" "/metrics" -}}
{{- end -}}
{{- range $key, $value := .podAnnotations -}}
  {{- $_ := set $annotations $key $value -}}
{{- end -}}
{{- include "inference-service.stringMap" $annotations -}}
{{- end }}
