export default async (input: unknown): Promise<unknown> => input
