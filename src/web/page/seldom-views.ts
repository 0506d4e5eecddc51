/** The views that few people open. The page loads them together, with the first of them that is opened. */
export { Control } from "./control.tsx";
export { Costs } from "./costs.tsx";
export { Events } from "./events.tsx";
export { Files } from "./files.tsx";
export { GroupPage, Groups } from "./groups.tsx";
export { Keys } from "./keys.tsx";
export { Lux } from "./lux.tsx";
export { Messages } from "./messages.tsx";
export { NewTask } from "./new-task.tsx";
export { Questions } from "./questions.tsx";
export { Schedules } from "./schedules.tsx";
