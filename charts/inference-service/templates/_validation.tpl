{{/*
The rules that join several keys, which the schema cannot state. All problems are reported at once, one a line:
the key, its value, why it cannot work and what to write.
*/}}
{{- define "inference-service.validate" -}}
{{- $values := include "inference-service.values" . | fromJson -}}
{{- $problems := concat
      (include "inference-service.imageProblems" $values.image | fromJsonArray)
      (include "inference-service.nameProblems" . | fromJsonArray)
      (include "inference-service.engineProblems" $values | fromJsonArray)
      (include "inference-service.rolloutProblems" $values | fromJsonArray)
      (include "inference-service.podProblems" $values | fromJsonArray)
      (include "inference-service.resourceProblems" $values.resources | fromJsonArray) -}}
{{- if $problems -}}
  {{- fail (join "\n" $problems) -}}
{{- end -}}
{{- end }}

{{- define "inference-service.imageProblems" -}}
{{- $problems := list -}}
{{- if not .digest -}}
  {{- $problems = append $problems "image.digest is required (sha256:...)" -}}
{{- end -}}
{{- $repository := .repository -}}
{{- $component := "[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*" -}}
{{- $host := "[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?" -}}
{{- if not $repository -}}
  {{- $problems = append $problems "image.repository is required (for example registry.example.com/team/engine)" -}}
{{- else if contains "@" $repository -}}
  {{- $problems = append $problems (printf "image.repository %q holds a digest: write %q there and the part after the @ as image.digest" $repository (splitList "@" $repository | first)) -}}
{{- else if regexMatch ":[^/]*$" $repository -}}
  {{- $problems = append $problems (printf "image.repository %q holds a tag: write %q there and name the image by image.digest" $repository (regexReplaceAll ":[^/]*$" $repository "")) -}}
{{- else if not (regexMatch (printf "^(?:%s/)?%s(?:/%s)*$" $host $component $component) $repository) -}}
  {{- $problems = append $problems (printf "image.repository %q is not an image name: write [host[:port]/]path in lower-case letters, digits and single . _ - between them, for example registry.example.com:5000/team/engine" $repository) -}}
{{- else if gt (len $repository) 255 -}}
  {{- $problems = append $problems (printf "image.repository has %d characters, more than the 255 that an image name may have: push the image under a shorter name" (len $repository)) -}}
{{- end -}}
{{- toJson $problems -}}
{{- end }}

{{- define "inference-service.nameProblems" -}}
{{- $problems := list -}}
{{- $name := include "inference-service.name" . -}}
{{- if or (gt (len $name) 63) (not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name)) -}}
  {{- $problems = append $problems (printf "the release name %q gives the Service name %q, which Kubernetes refuses: choose a release name of at most %d lower-case letters, digits and -, that begins with a letter" .Release.Name $name (sub 62 (len .Chart.Name))) -}}
{{- end -}}
{{- toJson $problems -}}
{{- end }}

{{- define "inference-service.engineProblems" -}}
{{- $problems := list -}}
{{- $engine := .engine -}}
{{- if hasKey $engine.env "MODEL_NAME" -}}
  {{- $problems = append $problems (printf "engine.env.MODEL_NAME is %s, but the chart sets MODEL_NAME to model.name (%q): remove it from engine.env and set model.name" (toJson $engine.env.MODEL_NAME) .model.name) -}}
{{- end -}}
{{- $size := add (len (toJson $engine.args)) (len (toJson $engine.env)) -}}
{{- if gt $size 500000 -}}
  {{- $problems = append $problems (printf "engine.args and engine.env hold about %d bytes, more than the 500000 for which a Helm release has room: put long texts into a ConfigMap and mount it with extraVolumes" $size) -}}
{{- end -}}
{{- range $name, $value := $engine.env -}}
  {{- if and (not (or (kindIs "string" $value) (kindIs "bool" $value) (kindIs "map" $value))) (contains "e" (toJson $value)) -}}
    {{- $problems = append $problems (printf "engine.env.%s is %s, a number that cannot be told from another way to write it: put it in quotes as the engine should get it" $name (toJson $value)) -}}
  {{- end -}}
{{- end -}}
{{- range $name := list "true" "false" "null" -}}
  {{- if hasKey $engine.env $name -}}
    {{- $problems = append $problems (printf "engine.env holds the name %q, which is what YAML reads when a name like N, NO or OFF is not quoted: write the name in quotes" $name) -}}
  {{- end -}}
{{- end -}}
{{- range $flag := list $engine.portFlag $engine.shutdownTimeoutFlag | compact | uniq -}}
  {{- range $index, $arg := $engine.args -}}
    {{- if eq ($arg | replace "_" "-") ($flag | replace "_" "-") -}}
      {{- $next := "" -}}
      {{- if lt (add1 $index) (len $engine.args) -}}
        {{- $next = index $engine.args (add1 $index | int) -}}
      {{- end -}}
      {{- if or (not $next) (hasPrefix "--" $next) -}}
        {{- $problems = append $problems (printf "engine.args holds %s with %q behind it, where the engine looks for a number: write the number as the next argument, or leave %s out" $arg $next $arg) -}}
      {{- end -}}
    {{- else if eq ($arg | replace "_" "-") (print ($flag | replace "_" "-") "=") -}}
      {{- $problems = append $problems (printf "engine.args holds %s with nothing behind it, where the engine looks for a number: write the number behind it, or leave %s out" $arg $flag) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- if $engine.portFlag -}}
  {{- $port := include "inference-service.flagValue" (dict "args" $engine.args "flag" $engine.portFlag) -}}
  {{- if and $port (ne $port (int64 $engine.port | toString)) -}}
    {{- $problems = append $problems (printf "engine.args holds %s %q, but engine.port is %d, where the probes and the Service look: set engine.port and leave %s out of engine.args" $engine.portFlag $port (int64 $engine.port) $engine.portFlag) -}}
  {{- end -}}
{{- end -}}
{{- if gt (int64 .probes.timeoutSeconds) (int64 .probes.periodSeconds) -}}
  {{- $problems = append $problems (printf "probes.timeoutSeconds (%d) is above probes.periodSeconds (%d): a probe would begin before the last one has ended; set timeoutSeconds to at most %d" (int64 .probes.timeoutSeconds) (int64 .probes.periodSeconds) (int64 .probes.periodSeconds)) -}}
{{- end -}}
{{- toJson $problems -}}
{{- end }}

{{- define "inference-service.rolloutProblems" -}}
{{- $problems := list -}}
{{- $grace := int64 .rollout.terminationGracePeriodSeconds -}}
{{- $preStop := int64 .rollout.preStopSeconds -}}
{{- if le $grace $preStop -}}
  {{- $problems = append $problems (printf "rollout.terminationGracePeriodSeconds (%d) is not above rollout.preStopSeconds (%d), which it includes: no answer could finish; set it to preStopSeconds + 5 + the seconds of the longest answer, for example %d" $grace $preStop (add $preStop 80)) -}}
{{- end -}}
{{- $replicas := int64 .replicaCount -}}
{{- $minAvailable := int64 .podDisruptionBudget.minAvailable -}}
{{- if and .podDisruptionBudget.enabled (gt $replicas 1) (ge $minAvailable $replicas) -}}
  {{- $problems = append $problems (printf "podDisruptionBudget.minAvailable (%d) is not below replicaCount (%d): no pod could ever be evicted, so that a node drain would never end; set minAvailable to at most %d" $minAvailable $replicas (sub $replicas 1)) -}}
{{- end -}}
{{- toJson $problems -}}
{{- end }}

{{- define "inference-service.podProblems" -}}
{{- $problems := list -}}
{{- range $label := list "app.kubernetes.io/name" "app.kubernetes.io/instance" "pod-template-hash" -}}
  {{- if hasKey $.podLabels $label -}}
    {{- $problems = append $problems (printf "podLabels holds %s, by which Kubernetes finds the pods: leave it out, it is set for you" $label) -}}
  {{- end -}}
{{- end -}}
{{- $names := list "shm" "tmp" -}}
{{- range .extraVolumes -}}
  {{- if has .name (list "shm" "tmp") -}}
    {{- $problems = append $problems (printf "extraVolumes holds the name %q, which the chart uses itself: choose another name" .name) -}}
  {{- else if has .name $names -}}
    {{- $problems = append $problems (printf "extraVolumes holds the name %q twice: give each volume its own name" .name) -}}
  {{- end -}}
  {{- $names = append $names .name -}}
{{- end -}}
{{- $paths := list -}}
{{- if .sharedMemory.size -}}
  {{- $paths = append $paths "/dev/shm" -}}
{{- end -}}
{{- if .securityContext.container.readOnlyRootFilesystem -}}
  {{- $paths = append $paths "/tmp" -}}
{{- end -}}
{{- range .extraVolumeMounts -}}
  {{- if or (has .name (list "shm" "tmp")) (not (has .name $names)) -}}
    {{- $problems = append $problems (printf "extraVolumeMounts mounts %q, which is not in extraVolumes: add a volume of that name there" .name) -}}
  {{- end -}}
  {{- if has (clean .mountPath) $paths -}}
    {{- $problems = append $problems (printf "extraVolumeMounts uses the mountPath %q, where something is mounted already: choose another path, or set sharedMemory.size to \"\" for /dev/shm" .mountPath) -}}
  {{- end -}}
  {{- $paths = append $paths (clean .mountPath) -}}
{{- end -}}
{{- $spreads := list -}}
{{- range .topologySpreadConstraints -}}
  {{- $spread := printf "%s, %s" .topologyKey .whenUnsatisfiable -}}
  {{- if has $spread $spreads -}}
    {{- $problems = append $problems (printf "topologySpreadConstraints holds two entries for %s: keep one" $spread) -}}
  {{- end -}}
  {{- $spreads = append $spreads $spread -}}
{{- end -}}
{{- $size := 0 -}}
{{- range $name, $value := .podAnnotations -}}
  {{- $size = add $size (len $name) (len (include "inference-service.text" $value)) -}}
{{- end -}}
{{- /* The API server's limit is 262144; the rest is for the Prometheus annotations. */ -}}
{{- if gt $size 262000 -}}
  {{- $problems = append $problems (printf "podAnnotations holds %d bytes, more than the 262000 for which an object has room: put long texts into a ConfigMap" $size) -}}
{{- end -}}
{{- toJson $problems -}}
{{- end }}

{{- define "inference-service.resourceProblems" -}}
{{- $problems := list -}}
{{- $limits := .limits | default dict -}}
{{- range $name, $request := .requests -}}
  {{- $limit := index $limits $name -}}
  {{- $asked := include "inference-service.text" $request -}}
  {{- if kindIs "invalid" $limit -}}
    {{- if contains "/" $name -}}
      {{- $problems = append $problems (printf "resources.requests.%s is %s without a limit, but a device cannot be shared: write it under resources.limits" $name $asked) -}}
    {{- end -}}
  {{- else if gt (include "inference-service.amount" $request | float64) (include "inference-service.amount" $limit | float64) -}}
    {{- $problems = append $problems (printf "resources.requests.%s (%s) is above resources.limits.%s (%s): lower the request or raise the limit" $name $asked $name (include "inference-service.text" $limit)) -}}
  {{- else if and (contains "/" $name) (ne (include "inference-service.amount" $request) (include "inference-service.amount" $limit)) -}}
    {{- $problems = append $problems (printf "resources.requests.%s (%s) is not resources.limits.%s (%s), but a device cannot be shared: write it under resources.limits only" $name $asked $name (include "inference-service.text" $limit)) -}}
  {{- end -}}
{{- end -}}
{{- toJson $problems -}}
{{- end }}

{{/* A quantity (500m, 1.5, 16Gi) as a plain number. */}}
{{- define "inference-service.amount" -}}
{{- $factors := dict "" 1 "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "Pi" 1125899906842624 -}}
{{- if kindIs "string" . -}}
{{- mulf (regexFind "^[0-9.]+" . | float64) (index $factors (regexFind "[A-Za-z]*$" .)) -}}
{{- else -}}
{{- toJson . -}}
{{- end -}}
{{- end }}
