{{/*
Values are written by these helpers and never by toYaml or quote: those turn 1048576 into 1.048576e+06.
*/}}

{{/*
A string as a double-quoted YAML scalar. %+q leaves only ASCII and its escapes are YAML's too, so that no
control character, line separator or byte order mark meets the YAML parser raw. "<" is escaped as well,
because Helm deletes the text "<no value>" from whatever a template prints.
*/}}
{{- define "inference-service.quoted" -}}
{{- printf "%+q" . | replace "<" "\\x3c" -}}
{{- end }}

{{/* The text that a string, number or boolean was written as. */}}
{{- define "inference-service.text" -}}
{{- if kindIs "string" . -}}{{- . -}}{{- else -}}{{- toJson . -}}{{- end -}}
{{- end }}

{{/* The same, quoted: for annotations, labels and other fields that Kubernetes wants as strings. */}}
{{- define "inference-service.quotedText" -}}
{{- include "inference-service.quoted" (include "inference-service.text" .) -}}
{{- end }}

{{/*
The same for argv and environment, where the kubelet expands $(NAME) and turns $$ into $: every $ is
doubled, so that the engine gets the text as written.
*/}}
{{- define "inference-service.unexpanded" -}}
{{- include "inference-service.quoted" (include "inference-service.text" . | replace "$" "$$") -}}
{{- end }}

{{/* A map key: plain where YAML reads it as the string it is. */}}
{{- define "inference-service.key" -}}
{{- $words := list "y" "n" "yes" "no" "on" "off" "true" "false" "null" -}}
{{- if and (regexMatch "^[A-Za-z][A-Za-z0-9]*([./_-][A-Za-z0-9]+)*$" .) (not (has (lower .) $words)) -}}
{{- . -}}
{{- else -}}
{{- include "inference-service.quoted" . -}}
{{- end -}}
{{- end }}

{{/* A map of strings, one line per key. */}}
{{- define "inference-service.stringMap" -}}
{{- $lines := list -}}
{{- range $key, $value := . -}}
  {{- if not (kindIs "invalid" $value) -}}
    {{- $lines = append $lines (printf "%s: %s" (include "inference-service.key" $key) (include "inference-service.quotedText" $value)) -}}
  {{- end -}}
{{- end -}}
{{- join "\n" $lines -}}
{{- end }}

{{/* Any value as block YAML; null entries of maps are left out. */}}
{{- define "inference-service.yaml" -}}
{{- if kindIs "map" . -}}
  {{- $lines := list -}}
  {{- range $key, $value := . -}}
    {{- if not (kindIs "invalid" $value) -}}
      {{- $child := include "inference-service.yaml" $value -}}
      {{- $nested := and (or (kindIs "map" $value) (kindIs "slice" $value)) (not (empty $value)) -}}
      {{- $lines = append $lines (printf "%s:%s" (include "inference-service.key" $key) (ternary (nindent 2 $child) (print " " $child) $nested)) -}}
    {{- end -}}
  {{- end -}}
  {{- join "\n" $lines | default "{}" -}}
{{- else if kindIs "slice" . -}}
  {{- $lines := list -}}
  {{- range . -}}
    {{- $lines = append $lines (printf "- %s" (include "inference-service.yaml" . | replace "\n" "\n  ")) -}}
  {{- end -}}
  {{- join "\n" $lines | default "[]" -}}
{{- else if kindIs "string" . -}}
  {{- include "inference-service.quoted" . -}}
{{- else -}}
  {{- toJson . -}}
{{- end -}}
{{- end }}
