/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's executable, carried inside this one. */
	.section .rodata
	.balign 16
	.global agent_image, agent_image_end
agent_image:
	.incbin AGENT_IMAGE
agent_image_end:
	.byte 0
	.section .note.GNU-stack, "", %progbits
