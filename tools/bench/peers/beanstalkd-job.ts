// The job of the load client for beanstalkd.
import { z } from "zod";

export const BeanstalkdJob = z.object({
  port: z.int(),
  connections: z.int().positive(),
  windowMs: z.number().positive(),
});
export type BeanstalkdJob = z.infer<typeof BeanstalkdJob>;
