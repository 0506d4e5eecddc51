// The job of the load client for beanstalkd.
import { z } from "zod";
import { WORKS } from "../scenarios.ts";

export const BeanstalkdJob = z.object({
  port: z.int(),
  work: z.enum(WORKS),
  connections: z.int().positive(),
  windowMs: z.number().positive(),
});
export type BeanstalkdJob = z.infer<typeof BeanstalkdJob>;
