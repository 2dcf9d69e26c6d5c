{{/*
The defaults of values.yaml once more. Helm drops a key that a values file sets to null, and
--reuse-values brings the values of an older chart that lacks newer keys; both mean "the default".
A test keeps the two copies equal.
*/}}
{{- define "inference-service.defaults" -}}
model:
  name: mock/mock-8b
image:
  repository: ""
  digest: ""
  pullPolicy: IfNotPresent
imagePullSecrets: []
replicaCount: 1
externalAutoscaler: false
engine:
  port: 8000
  portFlag: --port
  args: []
  env: {}
  loadTimeoutSeconds: 600
  shutdownTimeoutFlag: --shutdown-timeout
probes:
  path: /health
  periodSeconds: 5
  timeoutSeconds: 2
  readinessFailureThreshold: 3
  livenessFailureThreshold: 6
rollout:
  maxSurge: 1
  preStopSeconds: 10
  terminationGracePeriodSeconds: 90
service:
  type: ClusterIP
  port: 8000
metrics:
  annotations: true
podDisruptionBudget:
  enabled: true
  minAvailable: 1
resources: {}
sharedMemory:
  size: 1Gi
extraVolumes: []
extraVolumeMounts: []
podAnnotations: {}
podLabels: {}
priorityClassName: ""
nodeSelector: {}
affinity: {}
tolerations: []
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
securityContext:
  pod:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  container:
    allowPrivilegeEscalation: false
    capabilities:
      drop: [ALL]
    readOnlyRootFilesystem: false
{{- end }}

{{/*
The release's values as JSON, each missing or null key filled in from the defaults. Two levels deep:
below that (engine.env, securityContext.pod, ...) a map is the user's own and taken whole.
A 0, false or "" that the user wrote stays.
*/}}
{{- define "inference-service.values" -}}
{{- $values := deepCopy .Values -}}
{{- range $block, $default := include "inference-service.defaults" . | fromYaml -}}
  {{- $given := index $values $block -}}
  {{- if kindIs "invalid" $given -}}
    {{- $_ := set $values $block $default -}}
  {{- else if and (kindIs "map" $default) (kindIs "map" $given) -}}
    {{- range $key, $value := $default -}}
      {{- if kindIs "invalid" (index $given $key) -}}
        {{- $_ := set $given $key $value -}}
      {{- end -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- toJson $values -}}
{{- end }}
