/** The files of tasks: attached when a task is created, and told apart as inputs and outputs. */
import { transcripts } from "../support/transcript.ts";
import { NO_ID } from "./scene.ts";

transcripts(`
== files of task/create: are inputs of the task in the same commit, on <A|B>
  nodes n1
  a = upload a.txt
  b = upload b.txt {node: n1}
  # The balancer of B assigns it in the same commit: to the node of one of its files, which is an input even so.
  t = <|B >task/create {files: [$b, $a, $b]} -> assigned_node <null|n1>
  -> task {files: [$a, $b], inputs: [$a, $b], outputs: []}
  task $t -> {files: [$a, $b], inputs: [$a, $b], outputs: []}
  GET task/list -> tasks [{files: [$a, $b], inputs: [$a, $b], outputs: []}]
  GET file/list?task_id=$t -> files.attached [input, input]
  task/next n1 -> task {files: [$a, $b], inputs: [$a, $b], outputs: []}

== files of task/create: that are unknown, or belong to a task, are 400, and nothing is stored
  free, taken = upload a.txt
  owner = task/create {files: [$taken]}
  named = upload a.txt {task_id: $owner}
  task/create {files: [$free, ${NO_ID}, $taken, $named, x], depends_on: [${NO_ID}]} -> 400 depends_on.0 files.1 files.2 files.3 files.4
  task/create {files: $free} -> 400 files
  task/create {files: [${"$free, ".repeat(101)}]} -> 400 files
  GET status -> tasks_count 1
  last = task/create {files: [$free]}
  GET file/list?task_id=$last -> files [{file_id: $free, attached: input}]
  admin task/delete $last
  task/create {files: [$free]} -> 400 files.0

== files of task/create: in a batch go to the first request that names them, and a deleted one to none
  one, two, gone = upload a.txt
  batch {requests: [
    {path: task/create, body: {title: t, description: d, files: [$one]}},
    {path: task/create, body: {title: t, description: d, files: [$two, $one]}},
    {path: file/delete, body: {file_id: $gone}},
    {path: task/create, body: {title: t, description: d, files: [$gone]}},
    {path: task/create, body: {title: t, description: d, files: [$two]}}]} -> answers.status [200, 400, 200, 400, 200]
  -> answers.1.body.errors.path [files.1]
  -> answers.4.body.task.inputs [$two]

-- files of task/create: a key that is bound to a node attaches only the files of that node
  nodes n1 n2
  robot = admin key/add n1 {name: robot}
  own = as $robot upload a.txt
  nobodys = upload a.txt
  theirs = upload a.txt {node: n2}
  as $robot task/create {files: <[$own, $theirs]|[$nobodys]>} -> 403 key_bound_to_other_node
  as $robot task/create {files: [$own]} -> task {creator_node: n1, inputs: [$own]}

== inputs and outputs: an output is what the node that holds the task attaches; a later attempt gets the inputs
  nodes n1 n2
  given = upload a.txt
  t = task/create {files: [$given], backoff_s: 0}
  # Nobody holds it yet.
  early = upload a.txt {task_id: $t, node: n1}
  task/claim $t n1
  made = upload a.txt {task_id: $t, node: n1}
  others = upload a.txt {task_id: $t, node: n2}
  nobodys = upload a.txt {task_id: $t}
  task $t -> files [$given, $early, $made, $others, $nobodys]
  -> {inputs: [$given, $early, $others, $nobodys], outputs: [$made]}
  task/fail $t n1
  task/next n2 -> task {task_id: $t, inputs: [$given, $early, $others, $nobodys], outputs: [$made]}
  second = upload a.txt {task_id: $t, node: n2}
  late = upload a.txt {task_id: $t, node: n1}
  task/complete $t n2
  after = upload a.txt {task_id: $t, node: n2}
  task $t -> {inputs: [$given, $early, $others, $nobodys, $late], outputs: [$made, $second, $after]}
  GET file/list?task_id=$t -> files.attached [output, input, output, input, input, output, input, input]
  file/delete {file_id: $made}
  task $t -> outputs [$second, $after]

-- inputs and outputs: a file of no task is neither
  nodes n1
  f = upload a.txt {node: n1, task_id: ${NO_ID}}
  GET file/list -> files [{file_id: $f, task_id: null, attached: null}]

-- inputs and outputs: with a bound key the node need not be named
  nodes n1
  robot = admin key/add n1 {name: robot}
  t = task/create
  task/claim $t n1
  as $robot upload a.txt {task_id: $t} -> attached output
`);
